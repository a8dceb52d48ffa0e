// `opledger report`: prints the ledger of a record again, from the record alone.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/ledger_output.h"
#include "platform/record_file.h"

namespace opledger::cli {
namespace {

struct ReportFlags {
  std::string record_path;
  std::string format = "terminal";
  std::string json_path;
};

Result<int> run_report(const ReportFlags& flags) {
  const Result<report::Format> format = report::format_named(flags.format);
  if (!format) return format.error();
  const LedgerOutput output{*format, flags.json_path};
  if (Status status = check_output(output); !status) return status.error();
  const Result<core::Record> record = platform::load_record(flags.record_path);
  if (!record) return record.error();
  return print_ledger(*record, output);
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  auto flags = std::make_shared<ReportFlags>();
  CLI::App* command = app.add_subcommand("report", "print the ledger of a record again");
  command->add_option("record", flags->record_path, "a record that `compare --record` wrote, .gz or not")
      ->required();
  command->add_option("--format", flags->format, "terminal, markdown or json")->capture_default_str();
  command->add_option("--json", flags->json_path,
                      "also write the ledger as JSON to this file; - for stdout alone");
  command->callback([flags, &action] { action = [flags] { return run_report(*flags); }; });
}

}  // namespace opledger::cli
