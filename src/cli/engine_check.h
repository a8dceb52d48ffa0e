// `opledger engine check`: a subcommand of `engine` with a file of its own.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/command.h"

namespace opledger::cli {

/// Adds `check` to the `engine` command.
void add_engine_check(CLI::App& engine, Action& action);

}  // namespace opledger::cli
