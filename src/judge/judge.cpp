#include "judge/judge.h"

#include <utility>
#include <vector>

#include "core/stats/looks.h"

namespace opledger::judge {

namespace {

class Judge {
 public:
  Judge(const JudgeOptions& options, const platform::Clock& clock, const platform::Interrupt& interrupt,
        CommandRunner runner, PairLog log)
      : options_(options),
        clock_(clock),
        interrupt_(interrupt),
        runner_(std::move(runner)),
        log_(std::move(log)),
        end_ns_(clock.now_ns() + static_cast<int64_t>(options.budget_s * 1e9)) {}

  Result<JudgeOutcome> run(const Watch& watch) {
    look();
    while (outcome_.end_reason.empty()) {
      watch(outcome_, *core::next_look(outcome_.pairs));
      Status status = pair();
      if (!status && status.error().kind == Error::Kind::kInterrupted && outcome_.pairs > 0)
        outcome_.end_reason = "interrupted";
      else if (!status)
        return status.error();
      else
        look();
    }
    return outcome_;
  }

 private:
  void look() {
    std::vector<double> logs;
    logs.reserve(log_.pairs().size());
    double elapsed_s = 0;
    for (const Pair& pair : log_.pairs()) {
      logs.push_back(pair.log_ratio(options_.question.is_higher_better));
      elapsed_s += pair.elapsed_s;
    }
    outcome_ = outcome_of(logs, options_.min_effect_ratio);
    outcome_.elapsed_s = elapsed_s;
    if (outcome_.end_reason.empty() && !has_time_for_pair()) outcome_.end_reason = "budget";
  }

  [[nodiscard]] bool has_time_for_pair() const {
    const double each_s = outcome_.pairs == 0 ? 0 : outcome_.elapsed_s / outcome_.pairs;
    return static_cast<double>(end_ns_ - clock_.now_ns()) * 1e-9 > each_s;
  }

  Status pair() {
    if (!is_warm_) {
      for (const std::string* command : {&options_.question.a, &options_.question.b}) {
        Result<CommandRun> run = runner_.run(*command, clock_, interrupt_);
        if (!run) return run.error();
      }
      is_warm_ = true;
    }
    Pair pair;
    const bool is_a_first = outcome_.pairs % 2 == 0;
    for (const bool is_a : {is_a_first, !is_a_first}) {
      const Question& question = options_.question;
      Result<CommandRun> run = runner_.run(is_a ? question.a : question.b, clock_, interrupt_);
      if (!run) return run.error();
      (is_a ? pair.a : pair.b) = run->figure;
      pair.elapsed_s += run->elapsed_s;
    }
    return log_.append(pair);
  }

  const JudgeOptions& options_;
  const platform::Clock& clock_;
  const platform::Interrupt& interrupt_;
  CommandRunner runner_;
  PairLog log_;
  int64_t end_ns_;
  bool is_warm_ = false;
  JudgeOutcome outcome_;
};

}  // namespace

JudgeOutcome outcome_of(std::span<const double> log_ratios, double min_effect_ratio) {
  const auto count = static_cast<int>(log_ratios.size());
  JudgeOutcome outcome;
  outcome.pairs = count;
  outcome.looks = core::looks_reached(count);
  if (outcome.looks > 0)
    outcome.judgement =
        judge_pairs(log_ratios.first(static_cast<size_t>(*core::last_look(count))), min_effect_ratio);
  if (outcome.judgement.verdict != Verdict::kCannotTell)
    outcome.end_reason = "verdict";
  else if (!core::next_look(count))
    outcome.end_reason = "looks";
  return outcome;
}

Result<JudgeOutcome> run_judge(const JudgeOptions& options, const platform::Clock& clock,
                               const platform::Interrupt& interrupt, const Watch& watch) {
  Result<CommandRunner> runner =
      CommandRunner::make(options.question.figure, options.log_path, options.run_limit_ns);
  if (!runner) return runner.error();
  Result<PairLog> log = PairLog::open(options.record_path, options.question);
  if (!log) return log.error();
  return Judge(options, clock, interrupt, std::move(*runner), std::move(*log)).run(watch);
}

}  // namespace opledger::judge
