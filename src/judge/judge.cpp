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
      watch(outcome_, core::next_look(outcome_.pairs));
      Status status = pair();
      if (!status && status.error().kind == Error::Kind::kInterrupted && outcome_.pairs > 0)
        outcome_.end_reason = "interrupted";
      else if (!status)
        return status.error();
      else
        look();
    }
    watch(outcome_, std::nullopt);
    return outcome_;
  }

 private:
  // Judges what there is when it is as much as a planned look wants: an interval looked at elsewhere would
  // not be worth its 95%.
  void look() {
    const std::vector<Pair>& pairs = log_.pairs();
    outcome_.pairs = static_cast<int>(pairs.size());
    outcome_.elapsed_s = 0;
    for (const Pair& pair : pairs) outcome_.elapsed_s += pair.elapsed_s;
    outcome_.looks = core::looks_reached(outcome_.pairs);
    if (const std::optional<int> last = core::last_look(outcome_.pairs)) judge_first(*last);
    if (outcome_.judgement.verdict != Verdict::kCannotTell)
      outcome_.end_reason = "verdict";
    else if (!core::next_look(outcome_.pairs))
      outcome_.end_reason = "looks";
    else if (!has_time_for_pair())
      outcome_.end_reason = "budget";
  }

  void judge_first(int count) {
    std::vector<double> logs;
    logs.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i)
      logs.push_back(log_.pairs()[static_cast<size_t>(i)].log_ratio(options_.question.is_higher_better));
    outcome_.judgement = judge_pairs(logs, options_.min_effect_ratio);
  }

  [[nodiscard]] bool has_time_for_pair() const {
    const double each_s = outcome_.pairs == 0 ? 0 : outcome_.elapsed_s / outcome_.pairs;
    return static_cast<double>(end_ns_ - clock_.now_ns()) * 1e-9 > each_s;
  }

  Status pair() {
    if (!is_warm_) {
      for (const std::string* command : {&options_.question.command_a, &options_.question.command_b}) {
        Result<CommandRun> run = runner_.run(*command, clock_, interrupt_);
        if (!run) return run.error();
      }
      is_warm_ = true;
    }
    Pair pair;
    const bool is_a_first = outcome_.pairs % 2 == 0;
    for (const bool is_a : {is_a_first, !is_a_first}) {
      const Question& question = options_.question;
      Result<CommandRun> run =
          runner_.run(is_a ? question.command_a : question.command_b, clock_, interrupt_);
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
