#include "judge/verdict.h"

#include <cmath>

#include "core/stats/looks.h"

namespace opledger::judge {

Judgement judge_pairs(std::span<const double> log_ratios, double min_effect_ratio) {
  Judgement judgement;
  const std::optional<core::Estimate> estimate = core::interval_at_look(log_ratios);
  if (!estimate) return judgement;
  judgement.ratio = std::exp(estimate->centre);
  if (!estimate->interval) return judgement;
  judgement.interval = core::Interval{std::exp(estimate->interval->low), std::exp(estimate->interval->high)};
  judgement.verdict = core::verdict_of(estimate->centre, *estimate->interval, min_effect_ratio);
  return judgement;
}

int exit_code_of(Verdict verdict, Expectation expectation) {
  if (verdict == Verdict::kCannotTell) return 4;
  if (verdict == Verdict::kSame) return expectation == Expectation::kFaster ? 1 : 0;
  return verdict == Verdict::kSlower ? 1 : 0;
}

}  // namespace opledger::judge
