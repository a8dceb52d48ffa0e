#include "judge/verdict.h"

#include <array>
#include <cmath>
#include <utility>

#include "core/stats/looks.h"

namespace opledger::judge {

namespace {

constexpr std::array<std::pair<Verdict, const char*>, 4> kNames{{{Verdict::kFaster, "faster"},
                                                                 {Verdict::kSlower, "slower"},
                                                                 {Verdict::kSame, "same"},
                                                                 {Verdict::kCannotTell, "cannot tell"}}};

Verdict verdict_of(double log_ratio, const core::Interval& interval, double min_effect_ratio) {
  const double least = std::log1p(min_effect_ratio);
  if (interval.lies_inside(least)) return Verdict::kSame;
  if (interval.holds(0) || std::abs(log_ratio) <= least) return Verdict::kCannotTell;
  return log_ratio < 0 ? Verdict::kFaster : Verdict::kSlower;
}

}  // namespace

const char* verdict_name(Verdict verdict) {
  for (const auto& [known, name] : kNames) {
    if (known == verdict) return name;
  }
  return "cannot tell";
}

std::optional<Verdict> verdict_named(const std::string& name) {
  for (const auto& [verdict, known] : kNames) {
    if (name == known) return verdict;
  }
  return std::nullopt;
}

Judgement judge_pairs(std::span<const double> log_ratios, double min_effect_ratio) {
  Judgement judgement;
  const std::optional<core::Estimate> estimate = core::interval_at_look(log_ratios);
  if (!estimate) return judgement;
  judgement.ratio = std::exp(estimate->centre);
  if (!estimate->interval) return judgement;
  judgement.interval = core::Interval{std::exp(estimate->interval->low), std::exp(estimate->interval->high)};
  judgement.verdict = verdict_of(estimate->centre, *estimate->interval, min_effect_ratio);
  return judgement;
}

int exit_code_of(Verdict verdict, Expectation expectation) {
  if (verdict == Verdict::kCannotTell) return 4;
  if (verdict == Verdict::kSame) return expectation == Expectation::kFaster ? 1 : 0;
  return verdict == Verdict::kSlower ? 1 : 0;
}

}  // namespace opledger::judge
