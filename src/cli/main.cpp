// The program's outline: read the command line, run one subcommand, say once what went wrong. No subcommand
// prints its own errors, and no exit code but those listed in docs/cli.md leaves this file.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fcntl.h>
#include <fmt/format.h>
#include <iostream>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>

#include "cli/command.h"
#include "core/base/check.h"
#include "core/base/plain_text.h"

namespace opledger::cli {
namespace {

constexpr int kUsageError = 2;

int exit_code(Error::Kind kind) {
  switch (kind) {
    case Error::Kind::kBadInput:
    case Error::Kind::kEnvironment:
      return 2;
    case Error::Kind::kFailure:
      return 3;
    case Error::Kind::kInterrupted:
      return 130;
  }
  return 3;
}

/// `git bisect run` takes codes from 1 to 127 for "bad", but for 125, which skips the commit, and stops at
/// higher ones. Only a regression may make a commit bad; bad input would be the same at every commit.
int bisect_code(int code) {
  constexpr int kSkip = 125;
  constexpr int kStop = 128;
  if (code == 3 || code == 4) return kSkip;
  return code == 2 ? kStop : code;
}

void print_error(std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  fmt::print(stderr, "opledger: {}\n", plain_text(message));
}

// An exit code of 0 over output that nobody got would be a lie.
Status flush_stdout() {
  errno = 0;
  const bool is_flushed = std::fflush(stdout) == 0;
  if (is_flushed && std::ferror(stdout) == 0) return {};
  return lost_output(errno);
}

Result<int> run_action(const Action& action) {
  try {
    Result<int> outcome = action();
    if (!outcome) return outcome;
    if (Status status = flush_stdout(); !status) return status.error();
    return outcome;
  } catch (const std::system_error& error) {
    // So fmt::print says that a write failed.
    if (std::ferror(stdout) == 0) throw;
    return lost_output(error.code().value());
  }
}

// A program may be started without stdout. The next file that it opens would get that number, and the ledger
// would be printed into the record; and whoever closed stdout must be told that output is lost.
void occupy_standard_descriptors() {
  constexpr std::array<int, 3> kModes{O_RDONLY, O_RDONLY, O_WRONLY};
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) < 0) static_cast<void>(::open("/dev/null", kModes[static_cast<size_t>(fd)]));
  }
}

// The words of the command that was being read, for a next step that can be pasted: "opledger engine add".
std::string command_words(const CLI::App& app) {
  std::string words = "opledger";
  const CLI::App* deepest = &app;
  while (!deepest->get_subcommands().empty()) {
    deepest = deepest->get_subcommands().front();
    words += ' ' + deepest->get_name();
  }
  return words;
}

// CLI11 has exit codes of its own (105 and more) and prints several lines; ours are one line and 2.
int refuse(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    const int code = app.exit(error);
    std::cout.flush();
    const Status status = flush_stdout();
    if (!status) print_error(status.error().message);
    return status ? code : kUsageError;
  }
  const std::string words = command_words(app);
  print_error(fmt::format("{} (see `{} --help`)", error.what(), words));
  return kUsageError;
}

bool is_command(const CLI::App& app, std::string_view word) {
  const auto commands =
      app.get_subcommands([word](const CLI::App* command) { return command->get_name() == word; });
  return !commands.empty();
}

void add_commands(CLI::App& app, Action& action, bool& is_bisect) {
  add_engine(app, action);
  add_graph(app, action);
  add_compare(app, action);
  add_report(app, action);
  add_judge(app, action);
  add_selftest(app, action);
  add_regress(app, action, is_bisect);
  add_skeleton(app, action);
}

int run(int argc, char** argv) {
  CLI::App app{"Finds which operator category the speed gap between two LLM inference engines lives in."};
  app.name("opledger");
  app.set_version_flag("--version", "opledger " OPLEDGER_VERSION);
  app.require_subcommand(1);
  Action action;
  bool is_bisect = false;
  add_commands(app, action, is_bisect);
  if (argc > 1 && argv[1][0] != '-' && !is_command(app, argv[1])) {
    print_error(fmt::format("{}: no such command (see `opledger --help`)", argv[1]));
    return kUsageError;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return refuse(app, error);
  }
  OPLEDGER_CHECK(action != nullptr);
  const Result<int> outcome = run_action(action);
  if (!outcome) print_error(outcome.error().message);
  const int code = outcome ? *outcome : exit_code(outcome.error().kind);
  return is_bisect ? bisect_code(code) : code;
}

}  // namespace
}  // namespace opledger::cli

int main(int argc, char** argv) {
  try {
    opledger::cli::occupy_standard_descriptors();
    return opledger::cli::run(argc, argv);
  } catch (const std::exception& bug) {
    std::fprintf(stderr, "opledger: bug: %s\n", bug.what());
    std::abort();
  }
}
