// `opledger selftest`: does the method find what is planted, on this machine, with this engine and model?
// Flags, the table and the exit code; what is planted and judged is src/selftest's.
#include "selftest/selftest.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

#include "cli/bench_flags.h"
#include "cli/command.h"
#include "cli/compare_options.h"
#include "cli/ledger_output.h"
#include "platform/clock.h"
#include "platform/interrupt.h"
#include "session/progress.h"

namespace opledger::cli {
namespace {

constexpr const char* kSelftestUsage =
    "ENGINE as `compare` takes it, with -m, -p or -n and -d, -t, and any engine flag. One workload\n"
    "(16 tokens of decode at depth 64 unless told).\n"
    "  --row ROW[,ROW]      rows to plant work in; none  (default: the largest, a medium and a small one)\n"
    "  --share SHARE        of the pass, that the planted work takes               (default 5%)\n"
    "  --budget TIME        how long each planted row is measured                  (default 60s)\n"
    "  --faults WHAT        all, none, or some of unsorted_node,broken_fusion,changed_result,idle_copies,\n"
    "                       warm_copies                                            (default all)\n"
    "  --json FILE|-        what came out, as JSON";

constexpr double kDefaultShareRatio = 0.05;
constexpr double kDefaultBudgetS = 60;

std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) words.push_back(part);
  return words;
}

Result<std::vector<selftest::Fault>> faults_of(const std::string& text) {
  const std::vector<selftest::Fault>& known = selftest::known_faults();
  if (text.empty() || text == "all") return known;
  std::vector<selftest::Fault> chosen;
  if (text == "none") return chosen;
  for (const std::string& name : words_of(text)) {
    const auto found =
        std::find_if(known.begin(), known.end(), [&](const auto& fault) { return fault.name == name; });
    if (found == known.end())
      return Error::bad_input(fmt::format(
          "--faults {}: there is no such fault; give all, none, or names of `opledger selftest --help`",
          name));
    chosen.push_back(*found);
  }
  return chosen;
}

Result<selftest::Options> selftest_options_of(BenchFlags& parsed, const std::vector<std::string>& arguments) {
  if (parsed.words.size() != 1)
    return Error::bad_input(
        fmt::format("selftest: {} engines are given, one is needed (see `opledger "
                    "selftest --help`)",
                    parsed.words.size()));
  parsed.words.push_back(parsed.words.front());
  Result<session::CompareOptions> compare = one_workload_options_of(parsed, "selftest", arguments);
  if (!compare) return compare.error();
  selftest::Options options;
  options.compare = std::move(*compare);
  if (parsed.options["budget"].empty()) options.compare.budget_s = kDefaultBudgetS;
  // Whether copies are warm by bytes is not asked here, and the probe takes seconds of every session.
  options.compare.largest_probe_bytes = 0;
  if (const std::string& rows = parsed.options["row"]; !rows.empty())
    options.rows = rows == "none" ? std::vector<std::string>{} : words_of(rows);
  options.share_ratio = kDefaultShareRatio;
  if (const std::string& text = parsed.options["share"]; !text.empty()) {
    const Result<double> share = parse_share("--share", text);
    if (!share) return share.error();
    options.share_ratio = *share;
  }
  if (!(options.share_ratio > 0))
    return Error::bad_input("--share 0: work that takes no time cannot be found");
  Result<std::vector<selftest::Fault>> faults = faults_of(parsed.options["faults"]);
  if (!faults) return faults.error();
  options.faults = std::move(*faults);
  return options;
}

std::string interval_text(const core::Measured& gap) {
  return gap.ci_ms ? fmt::format("[{:+.4f}, {:+.4f}]", (*gap.ci_ms)[0], (*gap.ci_ms)[1]) : "none";
}

std::string maybe_ms(const std::optional<double>& ms) {
  return ms ? fmt::format("{:+.4f}", *ms) : "-";
}

void print_rows(const selftest::Report& report) {
  if (report.rows.empty()) return;
  fmt::print("\n  {:<20} {:>9} {:>17} {:>10} {:>22} {:>10}  {}\n", "planted in", "truth", "spins x ns",
             "found", "95% interval", "by copies", "verdict");
  for (const selftest::RowVerdict& row : report.rows) {
    const std::string truth = row.truth ? fmt::format("{:.4f}", row.truth->ms) : "-";
    const std::string spins =
        row.truth ? fmt::format("{:.4g} x {:.0f}", row.truth->spins, row.truth->spin_ns) : "-";
    fmt::print("  {:<20} {:>9} {:>17} {:>10} {:>22} {:>10}  {}\n", row.row, truth, spins,
               maybe_ms(row.gap.ms), interval_text(row.gap), maybe_ms(row.copies_ms), row.text());
  }
}

/// For a table; the JSON has all of it.
std::string brief(const std::string& text) {
  constexpr size_t kMost = 150;
  return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

void print_faults(const selftest::Report& report) {
  if (report.faults.empty()) return;
  fmt::print("\n  {:<28} {:<13} {:<12} {}\n", "planted fault", "check", "outcome", "what it says");
  for (const selftest::FaultVerdict& fault : report.faults)
    fmt::print("  {:<28} {:<13} {:<12} {}\n", fault.title, fault.check, selftest::outcome_name(fault.outcome),
               brief(fault.text));
}

void print_report(const std::string& engine, const selftest::Report& report) {
  fmt::print("selftest of {}, {}: {:.3f} ms per token or pass; what follows likewise\n", engine,
             report.workload, report.pass_ms);
  print_rows(report);
  print_faults(report);
  for (const std::string& alarm : report.false_alarms)
    fmt::print("\n  false alarm, nothing was planted: {}\n", alarm);
  fmt::print("\n{} {}\n",
             report.passed() ? "Everything planted was found, and nothing else was."
                             : "Not everything came out as it was planted: see the lines above.",
             session::duration_text(report.elapsed_s));
}

nlohmann::json json_of(const std::string& engine, const selftest::Report& report) {
  using nlohmann::json;
  const auto maybe = [](const auto& value) { return value ? json(*value) : json(); };
  json rows = json::array();
  for (const selftest::RowVerdict& row : report.rows) {
    rows.push_back({{"row", row.row},
                    {"truth_ms", row.truth ? json(row.truth->ms) : json()},
                    {"spins", row.truth ? json(row.truth->spins) : json()},
                    {"spin_ns", row.truth ? json(row.truth->spin_ns) : json()},
                    {"late_ratio", row.truth ? json(row.truth->late_ratio) : json()},
                    {"gap", {{"ms", maybe(row.gap.ms)}, {"ci_ms", maybe(row.gap.ci_ms)}}},
                    {"copies_ms", maybe(row.copies_ms)},
                    {"found", row.is_found},
                    {"size_held", row.holds_size},
                    {"wrong_rows", row.wrong_rows},
                    {"passed", row.passed()}});
  }
  json faults = json::array();
  for (const selftest::FaultVerdict& fault : report.faults) {
    faults.push_back({{"fault", fault.fault},
                      {"outcome", selftest::outcome_name(fault.outcome)},
                      {"check", fault.check},
                      {"text", fault.text}});
  }
  return {{"schema", "opledger-selftest"},
          {"version", 1},
          {"engine", engine},
          {"workload", report.workload},
          {"pass_ms", report.pass_ms},
          {"rows", rows},
          {"faults", faults},
          {"false_alarms", report.false_alarms},
          {"elapsed_s", report.elapsed_s},
          {"passed", report.passed()}};
}

Result<int> run_selftest(const std::vector<std::string>& arguments) {
  std::set<std::string> known = kCompareOptions;
  known.erase("rows");
  known.erase("record");
  known.merge(std::set<std::string>{"row", "share", "faults", "json"});
  Result<BenchFlags> parsed = parse_bench_flags(arguments, known);
  if (!parsed) return parsed.error();
  Result<selftest::Options> options = selftest_options_of(*parsed, arguments);
  if (!options) return options.error();
  LedgerOutput output;
  output.json_path = parsed->options["json"];
  if (Status status = check_output(output); !status) return status.error();
  const platform::SteadyClock clock;
  const platform::Interrupt interrupt;
  session::Progress progress(::isatty(STDERR_FILENO) == 1, clock);
  const Result<selftest::Report> report = selftest::run_selftest(*options, clock, interrupt, progress);
  progress.clear();
  if (!report) return report.error();
  const std::string& engine = options->compare.spec_a;
  if (output.json_path != "-") print_report(engine, *report);
  if (!output.json_path.empty()) {
    Status status = write_output("--json", output.json_path, json_of(engine, *report).dump(2));
    if (!status) return status.error();
  }
  return report->passed() ? 0 : 4;
}

}  // namespace

void add_selftest(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "selftest", "plant slow work and faults of the method, and say whether they are found");
  command->footer(kSelftestUsage);
  command->prefix_command();
  command->callback(
      [command, &action] { action = [words = command->remaining()] { return run_selftest(words); }; });
}

}  // namespace opledger::cli
