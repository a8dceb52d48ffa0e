#include "cli/ledger_output.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <unistd.h>

#include "cli/bench_flags.h"
#include "cli/command.h"

namespace opledger::cli {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

Error cannot_write(const std::string& path) {
  return Error::bad_input(
      fmt::format("--json {}: cannot be written ({}): name another file", path, std::strerror(errno)));
}

}  // namespace

Result<core::RulesByFamily> rules_of_record(const core::Record& record) {
  core::RulesByFamily rules;
  for (const core::EngineFacts& engine : record.engines) {
    Result<std::shared_ptr<const core::RuleSet>> own = rules_of_family(engine.family);
    if (!own) return own.error();
    rules[engine.family] = *own;
  }
  return rules;
}

Result<core::Ledger> ledger_of(const core::Record& record) {
  const Result<core::RulesByFamily> rules = rules_of_record(record);
  if (!rules) return rules.error();
  return core::analyse(record, *rules);
}

Status check_output(const LedgerOutput& output) {
  if (output.json_path.empty() || output.json_path == "-") return {};
  const bool was_there = std::filesystem::exists(output.json_path);
  // For appending: what an earlier run left must survive a run that fails.
  const File file(std::fopen(output.json_path.c_str(), "ab"));
  if (!file) return cannot_write(output.json_path);
  std::error_code ignored;
  if (!was_there) std::filesystem::remove(output.json_path, ignored);
  return {};
}

Result<std::string> ledger_text(const core::Record& record) {
  const Result<core::Ledger> ledger = ledger_of(record);
  if (!ledger) return ledger.error();
  return report::render(*ledger, report::Format::kTerminal, {});
}

Status print_rendering(const Rendering& rendering, const LedgerOutput& output) {
  const bool is_json_only = output.json_path == "-";
  if (!output.json_path.empty() && !is_json_only) {
    std::string json = rendering(report::Format::kJson, {});
    json.pop_back();  // write_output ends the line
    if (Status status = write_output("--json", output.json_path, json); !status) return status;
  }
  const report::Format format = is_json_only ? report::Format::kJson : output.format;
  const bool has_colour = report::wants_colour(::isatty(STDOUT_FILENO) == 1, std::getenv("NO_COLOR"));
  const std::string text = rendering(format, {has_colour});
  const bool is_whole = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!is_whole || std::fflush(stdout) != 0) return lost_output(errno);
  return {};
}

Result<int> print_ledger(const core::Record& record, const LedgerOutput& output) {
  const Result<core::Ledger> ledger = ledger_of(record);
  if (!ledger) return ledger.error();
  const Status status = print_rendering(
      [&](report::Format format, const report::RenderOptions& options) {
        return report::render(*ledger, format, options);
      },
      output);
  if (!status) return status.error();
  return core::exit_code_of(*ledger);
}

}  // namespace opledger::cli
