// `opledger judge`: is one command faster than another? Flags, output and the exit code; the measuring and
// the verdict are src/judge's.
#include "judge/judge.h"

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <unistd.h>

#include "cli/bench_flags.h"
#include "cli/command.h"
#include "judge/history.h"
#include "platform/clock.h"
#include "platform/interrupt.h"
#include "platform/machine_lock.h"
#include "session/progress.h"
#include "session/registry.h"

namespace opledger::cli {
namespace {

struct JudgeFlags {
  judge::JudgeOptions options;
  std::string min_effect = "0.5%";
  std::string budget = "180s";
  std::string run_timeout = "10m";
  std::string expect;
  std::string record, history, json;
};

std::string percent(double ratio) {
  return fmt::format("{:.3g}%", 100 * ratio);
}

/// "0.5%" or "0.005".
Result<double> effect_of(const std::string& text) {
  const bool is_percent = !text.empty() && text.back() == '%';
  const std::string digits = is_percent ? text.substr(0, text.size() - 1) : text;
  char* end = nullptr;
  const double number = std::strtod(digits.c_str(), &end) / (is_percent ? 100 : 1);
  if (digits.empty() || *end != '\0' || !(number >= 0) || number > 0.5) {
    return Error::bad_input(
        fmt::format("--min-effect {}: give a share from 0 to 50%, such as 0.5% or 0.005", text));
  }
  return number;
}

Result<judge::Expectation> expectation_of(const std::string& text) {
  if (text.empty()) return judge::Expectation::kNone;
  if (text == "faster") return judge::Expectation::kFaster;
  if (text == "not-slower") return judge::Expectation::kNotSlower;
  return Error::bad_input(fmt::format("--expect {}: give faster or not-slower", text));
}

std::string rfc3339_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

std::string interval_text(const judge::Judgement& judgement) {
  if (!judgement.interval) return "no interval below three pairs";
  return fmt::format("a / b {:.4f} [{:.4f}, {:.4f}]", judgement.ratio, judgement.interval->low,
                     judgement.interval->high);
}

std::string sentence(const judge::JudgeOutcome& outcome, double min_effect_ratio) {
  const judge::Judgement& judgement = outcome.judgement;
  switch (judgement.verdict) {
    case judge::Verdict::kFaster:
      return fmt::format("a is faster: it takes {} less time than b", percent(1 - judgement.ratio));
    case judge::Verdict::kSlower:
      return fmt::format("a is slower: it takes {} more time than b", percent(judgement.ratio - 1));
    case judge::Verdict::kSame:
      return fmt::format("a and b are the same within {}", percent(min_effect_ratio));
    case judge::Verdict::kCannotTell:
      break;
  }
  const char* why =
      outcome.end_reason == "looks"
          ? "after the last planned look: a longer command, or a quieter machine, would tell more"
      : outcome.end_reason == "budget" ? "within the budget: give a longer --budget"
                                       : "yet: it was interrupted";
  return fmt::format("cannot tell {}", why);
}

nlohmann::json json_of(const JudgeFlags& flags, const judge::JudgeOutcome& outcome, bool is_met) {
  const judge::Question& question = flags.options.question;
  const auto& interval = outcome.judgement.interval;
  const nlohmann::json ci = interval ? nlohmann::json{interval->low, interval->high} : nlohmann::json();
  return {{"schema", "opledger-judge"},
          {"version", 1},
          {"a", question.command_a},
          {"b", question.command_b},
          {"verdict", judge::verdict_name(outcome.judgement.verdict)},
          {"ratio", outcome.looks > 0 ? nlohmann::json(outcome.judgement.ratio) : nlohmann::json()},
          {"ratio_ci", ci},
          {"min_effect_ratio", flags.options.min_effect_ratio},
          {"expect", flags.expect.empty() ? nlohmann::json() : nlohmann::json(flags.expect)},
          {"met", flags.expect.empty() ? nlohmann::json() : nlohmann::json(is_met)},
          {"pairs", outcome.pairs},
          {"looks", outcome.looks},
          {"elapsed_s", outcome.elapsed_s},
          {"ended_by", outcome.end_reason}};
}

Status fill(JudgeFlags& flags) {
  judge::JudgeOptions& options = flags.options;
  const Result<double> effect = effect_of(flags.min_effect);
  if (!effect) return effect.error();
  options.min_effect_ratio = *effect;
  const Result<double> budget = parse_duration_s("--budget", flags.budget);
  if (!budget) return budget.error();
  options.budget_s = *budget;
  const Result<double> limit = parse_duration_s("--run-timeout", flags.run_timeout);
  if (!limit) return limit.error();
  options.run_limit_ns = static_cast<int64_t>(*limit * 1e9);
  if (!flags.record.empty()) options.record_path = flags.record;
  const Result<std::filesystem::path> cache = session::cache_folder();
  if (!cache) return cache.error();
  std::error_code failed;
  std::filesystem::create_directories(*cache / "logs", failed);
  options.log_path = (*cache / "logs" / fmt::format("judge-{}.log", ::getpid())).string();
  return {};
}

Status say(const JudgeFlags& flags, const judge::JudgeOutcome& outcome, bool is_met) {
  if (flags.json != "-") {
    fmt::print("{}\n{}, {} pairs, {} of 6 planned looks, {} of measuring\n",
               sentence(outcome, flags.options.min_effect_ratio),
               outcome.looks > 0 ? interval_text(outcome.judgement) : "too few pairs for a look",
               outcome.pairs, outcome.looks, session::duration_text(outcome.elapsed_s));
  }
  if (flags.json.empty()) return {};
  return write_output("--json", flags.json, json_of(flags, outcome, is_met).dump(2));
}

Status keep(const JudgeFlags& flags, const judge::JudgeOutcome& outcome) {
  if (flags.history.empty()) return {};
  const judge::Question& question = flags.options.question;
  if (Status status = judge::add_to_history(flags.history, question, outcome, rfc3339_now()); !status)
    return status;
  const Result<judge::History> history = judge::read_history(flags.history, question);
  if (!history) return history.error();
  if (flags.json != "-") {
    fmt::print(
        "history: {} verdicts of these commands; `faster` {} times, confirmed by the next verdict {} times, "
        "refuted {}\n",
        history->verdicts, history->faster, history->confirmed, history->refuted);
  }
  return {};
}

Result<int> run(JudgeFlags flags) {
  const Result<judge::Expectation> expectation = expectation_of(flags.expect);
  if (!expectation) return expectation.error();
  if (Status status = fill(flags); !status) return status.error();
  if (!flags.history.empty()) {
    const Result<judge::History> history = judge::read_history(flags.history, flags.options.question);
    if (!history) return history.error();
  }
  Result<platform::MachineLock> lock =
      platform::MachineLock::acquire(platform::MachineLock::default_path(), "opledger judge");
  if (!lock) return lock.error();
  const platform::SteadyClock clock;
  const platform::Interrupt interrupt;
  session::Progress progress(::isatty(STDERR_FILENO) == 1, clock);
  const auto watch = [&](const judge::JudgeOutcome& so_far, std::optional<int> next_look) {
    if (next_look) progress.show(fmt::format("{} pairs, next look at {}", so_far.pairs, *next_look));
  };
  Result<judge::JudgeOutcome> outcome = judge::run_judge(flags.options, clock, interrupt, watch);
  progress.clear();
  std::error_code ignored;
  std::filesystem::remove(flags.options.log_path, ignored);
  if (!outcome) return outcome.error();
  const int code = judge::exit_code_of(outcome->judgement.verdict, *expectation);
  if (Status status = say(flags, *outcome, code == 0); !status) return status.error();
  if (outcome->end_reason == "interrupted")
    return Error{Error::Kind::kInterrupted,
                 flags.record.empty()
                     ? "interrupted; with --record FILE it could be taken up again"
                     : fmt::format("interrupted; the same command goes on from {}", flags.record)};
  if (Status status = keep(flags, *outcome); !status) return status.error();
  return code;
}

}  // namespace

void add_judge(CLI::App& app, Action& action) {
  auto flags = std::make_shared<JudgeFlags>();
  judge::Question& question = flags->options.question;
  CLI::App* command = app.add_subcommand(
      "judge", "say whether one command is faster than another, or that it cannot be told");
  command->add_option("--cmd-a", question.command_a, "the command that is judged, for /bin/sh")->required();
  command->add_option("--cmd-b", question.command_b, "the command that it is judged against")->required();
  command
      ->add_option("--figure", question.figure,
                   "regular expression whose first group is the figure in the output (default: elapsed time)")
      ->type_name("REGEX");
  command->add_flag("--higher-is-better", question.is_higher_better,
                    "the figure is a rate, such as tokens per second");
  command->add_option("--min-effect", flags->min_effect, "differences below this are none")
      ->capture_default_str();
  command->add_option("--expect", flags->expect, "faster or not-slower: exit code 1 when a is not");
  command->add_option("--budget", flags->budget, "how long to measure")->capture_default_str();
  command->add_option("--run-timeout", flags->run_timeout, "how long one run may take")
      ->capture_default_str();
  command->add_option("--record", flags->record, "keep every pair; the same command goes on from there")
      ->type_name("FILE");
  command
      ->add_option("--history", flags->history, "keep the verdict, and say how often `faster` was confirmed")
      ->type_name("FILE");
  command->add_option("--json", flags->json, "the verdict as JSON, to a file or -")->type_name("FILE");
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace opledger::cli
