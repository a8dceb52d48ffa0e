// Expected values: scipy.stats (t.interval, trim_mean, mstats.trimmed_mean_ci), run by hand.
#include "core/stats/interval.h"

#include <cmath>
#include <gtest/gtest.h>
#include <vector>

namespace opledger::core {
namespace {

const std::vector<double> kA{1722, 1731, 1718};
const std::vector<double> kB{415, 420, 409};

TEST(MeanInterval, EqualsScipysForThreeGroups) {
  const auto estimate = mean_interval(std::vector<double>{10.0, 12.0, 11.5});
  ASSERT_TRUE(estimate && estimate->interval);
  EXPECT_NEAR(estimate->centre, 11.166666666666666, 1e-12);
  EXPECT_NEAR(estimate->interval->low, 8.581094160395534, 1e-9);
  EXPECT_NEAR(estimate->interval->high, 13.752239172937799, 1e-9);
}

TEST(MeanInterval, IsEmptyBelowThreeGroups) {
  const auto estimate = mean_interval(std::vector<double>{10.0, 12.0});
  ASSERT_TRUE(estimate);
  EXPECT_DOUBLE_EQ(estimate->centre, 11.0);
  EXPECT_FALSE(estimate->interval);
  EXPECT_FALSE(mean_interval({}));
}

TEST(PairedRatio, TakesTheIntervalOfTheLogRatios) {
  const auto ratio = paired_ratio_interval(kA, kB);
  ASSERT_TRUE(ratio && ratio->interval);
  EXPECT_NEAR(ratio->centre, 4.156976408185263, 1e-12);
  EXPECT_NEAR(ratio->interval->low, 4.05870121, 1e-7);
  EXPECT_NEAR(ratio->interval->high, 4.25763119, 1e-7);
}

TEST(PairedRatio, IsTightWhenBothSidesDriftTogether) {
  const auto ratio = paired_ratio_interval(std::vector<double>{2, 4, 8}, std::vector<double>{1, 2, 4});
  ASSERT_TRUE(ratio && ratio->interval);
  EXPECT_NEAR(ratio->interval->low, 2.0, 1e-12);
  EXPECT_NEAR(ratio->interval->high, 2.0, 1e-12);
}

TEST(PairedRatio, RefusesUnpairedOrNonPositiveFigures) {
  EXPECT_FALSE(paired_ratio_interval(kA, std::vector<double>{1, 2}));
  EXPECT_FALSE(paired_ratio_interval(std::vector<double>{0}, std::vector<double>{1}));
}

TEST(TrimmedMean, IsNotMovedByOneWildSampleAtEachEnd) {
  const auto estimate =
      trimmed_mean_interval(std::vector<double>{1.0, 1.2, 0.9, 1.1, 1.05, 0.95, 1.15, 30.0, 0.85, -7});
  ASSERT_TRUE(estimate && estimate->interval);
  EXPECT_NEAR(estimate->centre, 1.025, 1e-12);
  EXPECT_NEAR(estimate->interval->low, 0.87779472, 1e-7);
  EXPECT_NEAR(estimate->interval->high, 1.17220528, 1e-7);
}

TEST(TrimmedMean, IsThePlainMeanBelowFiveSamples) {
  const auto estimate = trimmed_mean_interval(std::vector<double>{10.0, 12.0, 11.5});
  ASSERT_TRUE(estimate && estimate->interval);
  EXPECT_NEAR(estimate->interval->low, 8.581094160395534, 1e-9);
}

// By hand: variances 44.333 and 30.333, pooled sd 6.1101, times sqrt(2) times t(0.975, 4) = 2.776445.
TEST(LaunchNoiseFloor, BoundsWhatAnEngineComparedWithItselfWouldShow) {
  EXPECT_NEAR(*launch_noise_floor(kA, kB), 22.969260779726287, 1e-9);
  EXPECT_FALSE(launch_noise_floor(std::vector<double>{1}, std::vector<double>{1}));
}

// By scipy: log-ratios 0.1, 0.2, 0.3: mean 0.2, sd 0.1; t(0.995, 2) = 9.924843; tanh(0.286505) = 0.2789154.
TEST(PairedNoiseFloor, KnowsNothingOfWhatSlowsBothLaunchesOfAPair) {
  const std::vector<double> b{100, 200, 300};
  const std::vector<double> a{100 * std::exp(0.1), 200 * std::exp(0.2), 300 * std::exp(0.3)};
  const double means = (a[0] + a[1] + a[2]) / 3 + 200;
  EXPECT_NEAR(*paired_noise_floor(a, b), means * 0.2789154, 1e-4);
  EXPECT_FALSE(paired_noise_floor(std::vector<double>{1, 2}, std::vector<double>{1, 2}));
  EXPECT_FALSE(paired_noise_floor(std::vector<double>{1, 2, 0}, std::vector<double>{1, 2, 3}));
}

}  // namespace
}  // namespace opledger::core
