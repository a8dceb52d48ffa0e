// `opledger compare`: measures two engines against each other and prints the ledger. The measuring is the
// session's, the figures are the analysis's; here are flags, output and the exit code.
#include "session/compare.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/bench_flags.h"
#include "cli/command.h"
#include "cli/compare_options.h"
#include "cli/ledger_output.h"
#include "cli/measure.h"
#include "core/ledger/precision.h"
#include "core/record/read.h"

namespace opledger::cli {
namespace {

constexpr const char* kCompareUsage =
    "ENGINE is NAME, NAME@flag=value,flag=\"a, b\" or exec:/path/to/program.\n"
    "  -m FILE              model of both engines; NAME@m=FILE for one\n"
    "  -p N[,N]             prefill of N tokens                  (default 512)\n"
    "  -n N[,N] -d D[,D]    decode of N tokens at depth D        (default 16 at 64)\n"
    "  -t N                 threads                              (default: all cores)\n"
    "  -b N -ub N           batch and ubatch tokens              (default 2048 and 512)\n"
    "  -fa 1 -ctk f16 ...   any flag that the engines know, as llama-bench spells it\n"
    "  --prompt-file FILE   run on this text instead of seeded token ids\n"
    "  --rows KIND          category, role, layer or op          (default category)\n"
    "  --budget TIME        how long to measure                  (default 180s)\n"
    "  --precision SHARE    end sooner, once the gap and every row that could be among the two\n"
    "                       largest are known to +- SHARE of the pass; 1%, say. Looked at after\n"
    "                       8, 11 and 16 launches of each engine\n"
    "  --record FILE[.gz]   keep every sample; `opledger report` reads it\n"
    "  --json FILE|-        the ledger as JSON\n"
    "  --seed N             of token ids and schedules           (default 1)\n"
    "  --engine-timeout T   how long one answer may take         (default 10m)";

// To stderr: stdout gets one ledger, the whole session's. What cannot be told yet is told at the end.
void print_so_far(const std::string& record_text) {
  const Result<core::Record> record = core::parse_record(record_text, "this session's record");
  const Result<std::string> ledger = record ? ledger_text(*record) : Result<std::string>(record.error());
  if (ledger) fmt::print(stderr, "\nThe ledger so far; it goes on, and intervals narrow.\n\n{}\n", *ledger);
}

bool is_enough(const std::string& record_text, double precision_ratio) {
  const Result<core::Record> record = core::parse_record(record_text, "this session's record");
  const Result<core::Ledger> ledger = record ? ledger_of(*record) : Result<core::Ledger>(record.error());
  return ledger && core::is_precise_enough(*ledger, precision_ratio);
}

Status take_precision(const std::string& text, session::CompareOptions& options) {
  if (text.empty()) return {};
  const Result<double> ratio = parse_share("--precision", text);
  if (!ratio) return ratio.error();
  options.precision_ratio = *ratio;
  options.max_groups = core::kPrecisionLooks.back();
  options.is_enough = [ratio = *ratio](const std::string& record_text) {
    return is_enough(record_text, ratio);
  };
  return {};
}

Result<int> run_compare(const std::vector<std::string>& arguments) {
  std::set<std::string> known = kCompareOptions;
  known.merge(std::set<std::string>{"json", "precision"});
  Result<BenchFlags> parsed = parse_bench_flags(arguments, known);
  if (!parsed) return parsed.error();
  Result<session::CompareOptions> options = compare_options_of(*parsed, "compare", arguments);
  if (!options) return options.error();
  if (Status status = take_precision(parsed->options["precision"], *options); !status) return status.error();
  LedgerOutput output;
  output.json_path = parsed->options["json"];
  if (Status status = check_output(output); !status) return status.error();

  options->show_so_far = print_so_far;
  return measure_and_print(*options,
                           [&](const core::Record& record) { return print_ledger(record, output); });
}

}  // namespace

void add_compare(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("compare", "measure two engines and print where the gap between them lies");
  command->footer(kCompareUsage);
  command->prefix_command();
  command->callback(
      [command, &action] { action = [words = command->remaining()] { return run_compare(words); }; });
}

}  // namespace opledger::cli
