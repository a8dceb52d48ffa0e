// The program's outline: read the command line, run one subcommand, say once what went wrong. No subcommand
// prints its own errors, and no exit code but those listed in docs/cli.md leaves this file.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fmt/format.h>
#include <string>
#include <string_view>

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

void print_error(std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  fmt::print(stderr, "opledger: {}\n", plain_text(message));
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
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);
  const std::string words = command_words(app);
  print_error(fmt::format("{} (see `{} --help`)", error.what(), words));
  return kUsageError;
}

bool is_command(const CLI::App& app, std::string_view word) {
  const auto commands =
      app.get_subcommands([word](const CLI::App* command) { return command->get_name() == word; });
  return !commands.empty();
}

void add_commands(CLI::App& app, Action& action) {
  add_engine(app, action);
  add_graph(app, action);
  add_compare(app, action);
  add_report(app, action);
  add_skeleton(app, action);
}

int run(int argc, char** argv) {
  CLI::App app{"Finds which operator category the speed gap between two LLM inference engines lives in."};
  app.name("opledger");
  app.set_version_flag("--version", "opledger " OPLEDGER_VERSION);
  app.require_subcommand(1);
  Action action;
  add_commands(app, action);
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
  const Result<int> outcome = action();
  if (outcome) return *outcome;
  print_error(outcome.error().message);
  return exit_code(outcome.error().kind);
}

}  // namespace
}  // namespace opledger::cli

int main(int argc, char** argv) {
  try {
    return opledger::cli::run(argc, argv);
  } catch (const std::exception& bug) {
    std::fprintf(stderr, "opledger: bug: %s\n", bug.what());
    std::abort();
  }
}
