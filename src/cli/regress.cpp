// `opledger regress`: is head slower than base, and where? Flags, output and the exit code; measuring is
// `compare`'s, the verdict src/core/regress's.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/bench_flags.h"
#include "cli/command.h"
#include "cli/compare_options.h"
#include "cli/ledger_output.h"
#include "cli/measure.h"
#include "core/regress/regression.h"
#include "judge/verdict.h"
#include "platform/record_file.h"

namespace opledger::cli {
namespace {

constexpr const char* kRegressUsage =
    "  opledger regress --base ENGINE --head ENGINE -m FILE [-p N] [-n N -d D]\n"
    "                       measures as `compare` does, with all of its flags: see its --help\n"
    "  opledger regress RECORD\n"
    "                       from a record alone: its a is head, its b is base\n"
    "  --min-effect SHARE   differences below this are none      (default 2%)\n"
    "  --format FORMAT      terminal, markdown or json           (default terminal)\n"
    "  --json FILE|-        also as JSON; - for stdout alone\n"
    "  --bisect             exit codes for `git bisect run`\n"
    "Exit codes: 0 not regressed and every check held, 1 regressed (whatever the checks say), 2 bad\n"
    "input, 3 an engine failed, 4 cannot tell, or not regressed but a check failed.\n"
    "With --bisect: 0 good, 1 bad, 125 skip (cannot tell, or an engine failed), 128 stop (bad input);\n"
    "checks are printed and do not decide. A commit that does not build must be skipped too:\n"
    "  git bisect run sh -c 'opledger engine add head --from . || exit 125;\n"
    "    opledger regress --base good --head head -m model.gguf --bisect'";

constexpr const char* kBisectSwitch = "bisect";

struct RegressFlags {
  LedgerOutput output;
  double min_effect_ratio = core::kSameRatio;
  bool is_bisect = false;
};

Result<RegressFlags> regress_flags_of(std::map<std::string, std::string>& options) {
  RegressFlags flags;
  if (const std::string& text = options["min-effect"]; !text.empty()) {
    const Result<double> effect = parse_share("--min-effect", text);
    if (!effect) return effect.error();
    flags.min_effect_ratio = *effect;
  }
  if (const std::string& name = options["format"]; !name.empty()) {
    const Result<report::Format> format = report::format_named(name);
    if (!format) return format.error();
    flags.output.format = *format;
  }
  flags.output.json_path = options["json"];
  flags.is_bisect = options.count(kBisectSwitch) > 0;
  return flags;
}

/// In a bisection the verdict decides alone: checks are about rows, and what disturbs a measurement is in the
/// verdict's interval already. On a shared machine `quiet` fails at most commits.
int regress_code(const core::Regression& regression, bool is_bisect) {
  const int code = judge::exit_code_of(regression.verdict(), judge::Expectation::kNotSlower);
  return code == 0 && !is_bisect && !regression.ledger.every_check_held() ? 4 : code;
}

Result<int> print_regression(const core::Record& record, const RegressFlags& flags) {
  const Result<core::RulesByFamily> rules = rules_of_record(record);
  if (!rules) return rules.error();
  const Result<core::Regression> regression = core::regression_of(record, *rules, flags.min_effect_ratio);
  if (!regression) return regression.error();
  const Status status = print_rendering(
      [&](report::Format format, const report::RenderOptions& options) {
        return report::render(*regression, format, options);
      },
      flags.output);
  if (!status) return status.error();
  return regress_code(*regression, flags.is_bisect);
}

Result<int> regress_record(const BenchFlags& parsed, const RegressFlags& flags) {
  static const std::set<std::string> of_records{"min-effect", "format", "json", kBisectSwitch};
  std::string unused = parsed.flags.empty() ? "" : "-" + parsed.flags.begin()->first;
  for (const auto& [name, value] : parsed.options) {
    if (!value.empty() && of_records.count(name) == 0) unused = "--" + name;
  }
  if (!unused.empty())
    return Error::bad_input(fmt::format("{}: from a record nothing is measured: leave it out", unused));
  const Result<core::Record> record = platform::load_record(parsed.words.front());
  if (!record) return record.error();
  return print_regression(*record, flags);
}

Result<int> regress_engines(BenchFlags& parsed, const std::vector<std::string>& arguments,
                            const RegressFlags& flags) {
  parsed.words = {parsed.options["head"], parsed.options["base"]};
  const Result<session::CompareOptions> options = compare_options_of(parsed, "regress", arguments);
  if (!options) return options.error();
  bool has_measured = false;
  Result<int> outcome = measure_and_print(*options, [&](const core::Record& record) {
    has_measured = true;
    return print_regression(record, flags);
  });
  // An engine that refuses a flag is this commit's matter, once both engines were found: the next one may
  // take it.
  if (flags.is_bisect && has_measured && !outcome && outcome.error().kind == Error::Kind::kBadInput)
    return Error::failure(outcome.error().message);
  return outcome;
}

Result<int> run_regress(const std::vector<std::string>& arguments) {
  std::set<std::string> known = kCompareOptions;
  known.merge(std::set<std::string>{"base", "head", "min-effect", "format", "json"});
  Result<BenchFlags> parsed = parse_bench_flags(arguments, known, {kBisectSwitch});
  if (!parsed) return parsed.error();
  const Result<RegressFlags> flags = regress_flags_of(parsed->options);
  if (!flags) return flags.error();
  const size_t engines = parsed->options.count("base") + parsed->options.count("head");
  const bool is_record = engines == 0 && parsed->words.size() == 1;
  if (!is_record && (engines != 2 || !parsed->words.empty()))
    return Error::bad_input("regress: give --base and --head, or one record (see `opledger regress --help`)");
  if (Status status = check_output(flags->output); !status) return status.error();
  return is_record ? regress_record(*parsed, *flags) : regress_engines(*parsed, arguments, *flags);
}

}  // namespace

void add_regress(CLI::App& app, Action& action, bool& is_bisect) {
  CLI::App* command =
      app.add_subcommand("regress",
                         "say whether an engine became slower, which rows moved and what it executes "
                         "differently");
  command->footer(kRegressUsage);
  command->prefix_command();
  command->callback([command, &action, &is_bisect] {
    const std::vector<std::string> words = command->remaining();
    // Before they are read: a word that is wrong must not make a commit bad.
    is_bisect = std::find(words.begin(), words.end(), std::string("--") + kBisectSwitch) != words.end();
    action = [words] { return run_regress(words); };
  });
}

}  // namespace opledger::cli
