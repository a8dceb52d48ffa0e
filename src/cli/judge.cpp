// `opledger judge`: is one engine, or one command, faster than another? Flags, output and the exit code; what
// a verdict needs is src/judge's.
#include "judge/judge.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "cli/bench_flags.h"
#include "cli/command.h"
#include "cli/compare_options.h"
#include "cli/judge_engines.h"
#include "cli/ledger_output.h"
#include "judge/history.h"
#include "platform/clock.h"
#include "platform/interrupt.h"
#include "platform/machine_lock.h"
#include "report/numbers.h"
#include "session/progress.h"
#include "session/registry.h"

namespace opledger::cli {
namespace {

constexpr const char* kJudgeUsage =
    "Two engines (as `compare` takes them, with -m, -p or -n and -d, and any engine flag), or two commands:\n"
    "  --cmd-a CMD --cmd-b CMD  for /bin/sh; a is judged against b\n"
    "  --figure REGEX           its first group is the figure in the output (default: elapsed time)\n"
    "  --better lower|higher    higher: the figure is a rate             (default lower)\n"
    "  --run-timeout TIME       how long one run may take                (default 10m)\n"
    "Both:\n"
    "  --min-effect SHARE       differences below this are none          (default 0.5%)\n"
    "  --expect WHAT            faster or not-slower: exit code 1 when a is not\n"
    "  --budget TIME            how long to measure                      (default 180s)\n"
    "  --record FILE            keep what was measured; two commands go on from there\n"
    "  --history FILE           keep the verdict, and say how often `faster` was confirmed\n"
    "  --json FILE|-            the verdict as JSON";

struct Asked {
  judge::Question question;  ///< engines are named by their specs
  double min_effect_ratio = 0.005;
  judge::Expectation expectation = judge::Expectation::kNone;
  std::string expect, history_path, json_path;
};

Result<judge::Expectation> expectation_of(const std::string& text) {
  if (text.empty()) return judge::Expectation::kNone;
  if (text == "faster") return judge::Expectation::kFaster;
  if (text == "not-slower") return judge::Expectation::kNotSlower;
  return Error::bad_input(fmt::format("--expect {}: give faster or not-slower", text));
}

Result<bool> is_higher_better(const std::string& text) {
  if (text.empty() || text == "lower") return false;
  if (text == "higher") return true;
  return Error::bad_input(fmt::format("--better {}: give lower or higher", text));
}

std::string why_not_told(const std::string& end_reason) {
  if (end_reason == "looks")
    return "cannot tell after the last planned look: more work per run, or a quieter machine, would tell "
           "more";
  if (end_reason == "budget") return "cannot tell within the budget: give a longer --budget";
  return "cannot tell yet: it was interrupted";
}

std::string sentence(const judge::JudgeOutcome& outcome, const Asked& asked) {
  const auto& [a, b] = std::pair(asked.question.a, asked.question.b);
  const double ratio = outcome.judgement.ratio;
  switch (outcome.judgement.verdict) {
    case judge::Verdict::kFaster:
      return fmt::format("faster: {} takes {} less time than {}", a, report::percent_text(1 - ratio), b);
    case judge::Verdict::kSlower:
      return fmt::format("slower: {} takes {} more time than {}", a, report::percent_text(ratio - 1), b);
    case judge::Verdict::kSame:
      return fmt::format("same: {} and {} take the same time within {}", a, b,
                         report::percent_text(asked.min_effect_ratio));
    case judge::Verdict::kCannotTell:
      break;
  }
  return why_not_told(outcome.end_reason);
}

std::string figures_text(const judge::JudgeOutcome& outcome) {
  const judge::Judgement& judgement = outcome.judgement;
  const std::string cost = fmt::format("{} pairs, {} of 6 planned looks, {}", outcome.pairs, outcome.looks,
                                       session::duration_text(outcome.elapsed_s));
  if (!judgement.interval) return "too few pairs for a look; " + cost;
  return fmt::format("time of a / time of b {:.4f} [{:.4f}, {:.4f}]; {}", judgement.ratio,
                     judgement.interval->low, judgement.interval->high, cost);
}

nlohmann::json json_of(const Asked& asked, const judge::JudgeOutcome& outcome, bool is_met) {
  using nlohmann::json;
  const auto& interval = outcome.judgement.interval;
  return {{"schema", "opledger-judge"},
          {"version", 1},
          {"a", asked.question.a},
          {"b", asked.question.b},
          {"verdict", core::verdict_name(outcome.judgement.verdict)},
          {"ratio", interval ? json(outcome.judgement.ratio) : json()},
          {"ratio_ci", interval ? json{interval->low, interval->high} : json()},
          {"min_effect_ratio", asked.min_effect_ratio},
          {"expect", asked.expect.empty() ? json() : json(asked.expect)},
          {"met", asked.expect.empty() ? json() : json(is_met)},
          {"pairs", outcome.pairs},
          {"looks", outcome.looks},
          {"elapsed_s", outcome.elapsed_s},
          {"ended_by", outcome.end_reason}};
}

Result<judge::JudgeOptions> command_options(BenchFlags& parsed, const Asked& asked) {
  judge::JudgeOptions options;
  options.question = asked.question;
  options.min_effect_ratio = asked.min_effect_ratio;
  if (!parsed.flags.empty())
    return Error::bad_input(
        fmt::format("-{}: commands take no engine's flags: put it into --cmd-a and --cmd-b",
                    parsed.flags.begin()->first));
  if (const std::string& text = parsed.options["budget"]; !text.empty()) {
    const Result<double> budget = parse_duration_s("--budget", text);
    if (!budget) return budget.error();
    options.budget_s = *budget;
  }
  if (const std::string& text = parsed.options["run-timeout"]; !text.empty()) {
    const Result<double> limit = parse_duration_s("--run-timeout", text);
    if (!limit) return limit.error();
    options.run_limit_ns = static_cast<int64_t>(*limit * 1e9);
  }
  if (const std::string& path = parsed.options["record"]; !path.empty()) options.record_path = path;
  const Result<std::filesystem::path> cache = session::cache_folder();
  if (!cache) return cache.error();
  std::error_code failed;
  std::filesystem::create_directories(*cache / "logs", failed);
  options.log_path = (*cache / "logs" / fmt::format("judge-{}.log", ::getpid())).string();
  return options;
}

Result<judge::JudgeOutcome> judge_commands(BenchFlags& parsed, const Asked& asked,
                                           session::Progress& progress) {
  Result<judge::JudgeOptions> options = command_options(parsed, asked);
  if (!options) return options.error();
  Result<platform::MachineLock> lock =
      platform::MachineLock::acquire(platform::MachineLock::default_path(), "opledger judge");
  if (!lock) return lock.error();
  const platform::SteadyClock clock;
  const platform::Interrupt interrupt;
  const auto watch = [&](const judge::JudgeOutcome& so_far, int next_look) {
    progress.show(fmt::format("{} pairs, next look at {}", so_far.pairs, next_look));
  };
  Result<judge::JudgeOutcome> outcome = judge::run_judge(*options, clock, interrupt, watch);
  std::error_code ignored;
  std::filesystem::remove(options->log_path, ignored);
  return outcome;
}

Result<Asked> asked_of(BenchFlags& parsed) {
  auto& options = parsed.options;
  Asked asked;
  const bool has_commands = options.count("cmd-a") + options.count("cmd-b") == 2;
  if (has_commands == !parsed.words.empty() || options.count("cmd-a") != options.count("cmd-b"))
    return Error::bad_input("judge: give two engines, or --cmd-a and --cmd-b (see `opledger judge --help`)");
  for (const char* name : {"figure", "better", "run-timeout"}) {
    if (!has_commands && options.count(name) > 0)
      return Error::bad_input(
          fmt::format("--{}: is for commands, engines are measured as `compare` does", name));
  }
  if (const std::string& text = options["min-effect"]; !text.empty()) {
    const Result<double> effect = parse_share("--min-effect", text);
    if (!effect) return effect.error();
    asked.min_effect_ratio = *effect;
  }
  asked.expect = options["expect"];
  const Result<judge::Expectation> expectation = expectation_of(asked.expect);
  if (!expectation) return expectation.error();
  asked.expectation = *expectation;
  const Result<bool> is_higher = is_higher_better(options["better"]);
  if (!is_higher) return is_higher.error();
  asked.question.is_higher_better = *is_higher;
  asked.question.figure = options["figure"];
  asked.question.a = has_commands ? options["cmd-a"] : parsed.words.front();
  asked.question.b = has_commands ? options["cmd-b"] : parsed.words.back();
  // Engines are asked about one model and workload at a time.
  for (const auto& [name, value] : parsed.flags) asked.question.flags += fmt::format("-{} {} ", name, value);
  asked.history_path = options["history"];
  asked.json_path = options["json"];
  return asked;
}

Status keep_history(const Asked& asked, const judge::JudgeOutcome& outcome) {
  if (asked.history_path.empty()) return {};
  Status status = judge::add_to_history(asked.history_path, asked.question, outcome, platform::rfc3339_now());
  if (!status) return status;
  const Result<judge::History> history = judge::read_history(asked.history_path, asked.question);
  if (!history) return history.error();
  if (asked.json_path != "-") {
    fmt::print(
        "history: {} verdicts of these two; `faster` {} times, of which the next verdict confirmed {} and "
        "refuted {}\n",
        history->verdicts, history->faster, history->confirmed, history->refuted);
  }
  return {};
}

Result<int> tell(const Asked& asked, const judge::JudgeOutcome& outcome) {
  const int code = judge::exit_code_of(outcome.judgement.verdict, asked.expectation);
  if (asked.json_path != "-") fmt::print("{}\n{}\n", sentence(outcome, asked), figures_text(outcome));
  if (!asked.json_path.empty()) {
    Status status = write_output("--json", asked.json_path, json_of(asked, outcome, code == 0).dump(2));
    if (!status) return status.error();
  }
  if (outcome.end_reason == "interrupted") return Error{Error::Kind::kInterrupted, "interrupted"};
  if (Status status = keep_history(asked, outcome); !status) return status.error();
  return code;
}

Result<int> run_judge(const std::vector<std::string>& arguments) {
  std::set<std::string> known = kCompareOptions;
  known.erase("rows");
  known.merge(std::set<std::string>{"cmd-a", "cmd-b", "figure", "better", "run-timeout", "min-effect",
                                    "expect", "history", "json"});
  Result<BenchFlags> parsed = parse_bench_flags(arguments, known);
  if (!parsed) return parsed.error();
  const Result<Asked> asked = asked_of(*parsed);
  if (!asked) return asked.error();
  if (!asked->history_path.empty()) {
    const Result<judge::History> history = judge::read_history(asked->history_path, asked->question);
    if (!history) return history.error();
    if (Status status = judge::check_history(asked->history_path); !status) return status.error();
  }
  LedgerOutput output;
  output.json_path = asked->json_path;
  if (Status status = check_output(output); !status) return status.error();
  const platform::SteadyClock clock;
  session::Progress progress(::isatty(STDERR_FILENO) == 1, clock);
  Result<judge::JudgeOutcome> outcome =
      parsed->words.empty() ? judge_commands(*parsed, *asked, progress)
                            : judge_engines(*parsed, arguments, asked->min_effect_ratio, progress);
  progress.clear();
  if (!outcome) return outcome.error();
  return tell(*asked, *outcome);
}

}  // namespace

void add_judge(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "judge", "say whether one engine or command is faster than another, or that it cannot be told");
  command->footer(kJudgeUsage);
  command->prefix_command();
  command->callback(
      [command, &action] { action = [words = command->remaining()] { return run_judge(words); }; });
}

}  // namespace opledger::cli
