// How a subcommand joins the program: one file each, one `add_NAME` function each, all called in main.cpp.
// Parsing only stores an Action; main runs it and owns the one place where errors are printed.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "core/base/result.h"

namespace opledger::cli {

/// What a subcommand does once its flags are read. Returns the exit code (0, 1 or 4), or the Error that
/// decides it (2, 3 or 130).
using Action = std::function<Result<int>()>;

/// Environment error for what stdout did not take; `problem` is the write's errno, 0 when that is gone.
/// main.cpp flushes after every command and asks: a command need not, unless it wants the errno.
Error lost_output(int problem);

/// Each adds one subcommand to `app`, whose callback stores its Action.
void add_engine(CLI::App& app, Action& action);
void add_graph(CLI::App& app, Action& action);
void add_compare(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);
void add_judge(CLI::App& app, Action& action);
void add_selftest(CLI::App& app, Action& action);
/// `is_bisect`: set while the command line is read, where the exit code is for `git bisect run`.
void add_regress(CLI::App& app, Action& action, bool& is_bisect);
void add_skeleton(CLI::App& app, Action& action);

}  // namespace opledger::cli
