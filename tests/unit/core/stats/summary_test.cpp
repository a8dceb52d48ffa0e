// Expected values: numpy 2 (quantile, std with ddof=1) and scipy (median_abs_deviation), run by hand.
#include "core/stats/summary.h"

#include <gtest/gtest.h>
#include <vector>

namespace opledger::core {
namespace {

const std::vector<double> kSamples{3.1, 2.9, 3.6, 3.3, 9.7, 3.0, 2.8};

TEST(Summary, QuantilesFallLinearlyBetweenOrderStatistics) {
  EXPECT_DOUBLE_EQ(*quantile_of(kSamples, 0.0), 2.8);
  EXPECT_NEAR(*quantile_of(kSamples, 0.1), 2.86, 1e-12);
  EXPECT_NEAR(*quantile_of(kSamples, 0.25), 2.95, 1e-12);
  EXPECT_NEAR(*quantile_of(kSamples, 0.9), 6.04, 1e-12);
  EXPECT_DOUBLE_EQ(*quantile_of(kSamples, 1.0), 9.7);
}

TEST(Summary, MedianOfAnEvenCountIsTheMeanOfTheMiddleTwo) {
  EXPECT_DOUBLE_EQ(*median_of(kSamples), 3.1);
  EXPECT_DOUBLE_EQ(*median_of(std::vector<double>{4, 1, 3, 2}), 2.5);
}

TEST(Summary, MedianAbsoluteDeviationIgnoresOneWildSample) {
  EXPECT_NEAR(*median_absolute_deviation(kSamples), 0.2, 1e-12);
}

TEST(Summary, StandardDeviationSurvivesLargeNearlyEqualValues) {
  EXPECT_NEAR(*sample_stddev(kSamples), 2.5025701074809352, 1e-12);
  EXPECT_NEAR(*sample_stddev(std::vector<double>{1e12, 1e12 + 1, 1e12 + 4}), 2.0816660000626, 1e-6);
}

TEST(Summary, AnUnknownSpreadIsEmptyNotZero) {
  const std::vector<double> none;
  EXPECT_FALSE(mean_of(none));
  EXPECT_FALSE(median_of(none));
  EXPECT_FALSE(median_absolute_deviation(none));
  EXPECT_FALSE(sample_stddev(std::vector<double>{5.0}));
  EXPECT_FALSE(quantile_of(kSamples, 1.5));
}

}  // namespace
}  // namespace opledger::core
