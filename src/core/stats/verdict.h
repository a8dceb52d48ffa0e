// What an interval of a ratio says of two times: which is longer, that they are the same, or that it cannot
// be told.
#pragma once

#include <optional>
#include <string>

#include "core/stats/interval.h"

namespace opledger::core {

enum class Verdict { kFaster, kSlower, kSame, kCannotTell };

/// "faster", "slower", "same" or "cannot tell": of a against b.
const char* verdict_name(Verdict verdict);
/// Empty for any other word.
std::optional<Verdict> verdict_named(const std::string& name);

/// Of log(time of a / time of b) and its interval. `same` when the whole interval lies within
/// `min_effect_ratio` of 1; `faster` or `slower` when the interval excludes 1 and the ratio itself lies
/// farther from it than that; otherwise it cannot be told.
Verdict verdict_of(double log_ratio, const Interval& interval, double min_effect_ratio);

}  // namespace opledger::core
