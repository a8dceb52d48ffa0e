#include "core/stats/verdict.h"

#include <array>
#include <cmath>
#include <utility>

namespace opledger::core {

namespace {

constexpr std::array<std::pair<Verdict, const char*>, 4> kVerdictNames{
    {{Verdict::kFaster, "faster"},
     {Verdict::kSlower, "slower"},
     {Verdict::kSame, "same"},
     {Verdict::kCannotTell, "cannot tell"}}};

}  // namespace

const char* verdict_name(Verdict verdict) {
  for (const auto& [known, name] : kVerdictNames) {
    if (known == verdict) return name;
  }
  return "cannot tell";
}

std::optional<Verdict> verdict_named(const std::string& name) {
  for (const auto& [verdict, known] : kVerdictNames) {
    if (name == known) return verdict;
  }
  return std::nullopt;
}

Verdict verdict_of(double log_ratio, const Interval& interval, double min_effect_ratio) {
  const double least = std::log1p(min_effect_ratio);
  if (interval.lies_inside(least)) return Verdict::kSame;
  if (interval.holds(0) || std::abs(log_ratio) <= least) return Verdict::kCannotTell;
  return log_ratio < 0 ? Verdict::kFaster : Verdict::kSlower;
}

}  // namespace opledger::core
