// What pairs of figures say of two commands: which one is faster, that they are the same, or that it cannot
// be told.
#pragma once

#include <optional>
#include <span>

#include "core/stats/interval.h"
#include "core/stats/verdict.h"

namespace opledger::judge {

using Verdict = core::Verdict;

struct Judgement {
  Verdict verdict = Verdict::kCannotTell;
  double ratio = 1;                        ///< time of a over time of b
  std::optional<core::Interval> interval;  ///< of the ratio, at a planned look; empty below three pairs
};

/// `log_ratios`: log(time of a / time of b), one per pair, as many as there are at a planned look (judged at
/// other places, too many verdicts would be wrong); the verdict is core::verdict_of's. Fewer than three
/// pairs: cannot tell.
Judgement judge_pairs(std::span<const double> log_ratios, double min_effect_ratio);

/// What the caller wants of a, and the exit code that says whether it is so: 0 it is, 1 it is not, 4 it
/// cannot be told.
enum class Expectation { kNone, kFaster, kNotSlower };
int exit_code_of(Verdict verdict, Expectation expectation);

}  // namespace opledger::judge
