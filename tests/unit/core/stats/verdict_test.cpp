#include "core/stats/verdict.h"

#include <cmath>
#include <gtest/gtest.h>

namespace opledger::core {
namespace {

// Intervals of a ratio, with its middle.
Verdict verdict_between(double low, double high, double min_effect_ratio) {
  const Interval logs{std::log(low), std::log(high)};
  return verdict_of((logs.low + logs.high) / 2, logs, min_effect_ratio);
}

TEST(VerdictOf, SaysWhichTimeIsLonger) {
  EXPECT_EQ(verdict_between(1.02, 1.04, 0.01), Verdict::kSlower);
  EXPECT_EQ(verdict_between(0.96, 0.98, 0.01), Verdict::kFaster);
}

TEST(VerdictOf, IsSameOnlyWhereTheWholeIntervalIsBelowTheLeastEffect) {
  EXPECT_EQ(verdict_between(0.995, 1.005, 0.01), Verdict::kSame);
  EXPECT_EQ(verdict_between(0.995, 1.015, 0.01), Verdict::kCannotTell);
}

TEST(VerdictOf, CannotBeToldWhereOneIsInsideOrTheRatioIsNearerThanTheLeastEffect) {
  EXPECT_EQ(verdict_between(0.99, 1.08, 0.01), Verdict::kCannotTell);
  EXPECT_EQ(verdict_between(1.001, 1.017, 0.01), Verdict::kCannotTell);
}

TEST(VerdictName, IsReadBack) {
  for (const Verdict verdict : {Verdict::kFaster, Verdict::kSlower, Verdict::kSame, Verdict::kCannotTell})
    EXPECT_EQ(verdict_named(verdict_name(verdict)), verdict);
  EXPECT_FALSE(verdict_named("better"));
}

}  // namespace
}  // namespace opledger::core
