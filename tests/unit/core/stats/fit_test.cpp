// Expected values: scipy.stats (linregress, theilslopes), run by hand.
#include "core/stats/fit.h"

#include <gtest/gtest.h>
#include <vector>

namespace opledger::core {
namespace {

const std::vector<double> kCopies{1, 2, 4, 1, 2, 4};

TEST(LineFit, EqualsScipysLeastSquares) {
  const auto fit = fit_line(kCopies, std::vector<double>{1.6, 3.1, 6.3, 1.5, 3.2, 6.1});
  ASSERT_TRUE(fit && fit->slope_interval && fit->intercept_interval);
  EXPECT_NEAR(fit->intercept, 0.025, 1e-12);
  EXPECT_NEAR(fit->slope, 1.546428571428571, 1e-12);
  EXPECT_NEAR(fit->slope_interval->low, 1.4636146851138747, 1e-9);
  EXPECT_NEAR(fit->slope_interval->high, 1.6292424577432674, 1e-9);
  EXPECT_NEAR(fit->intercept_interval->low, -0.19410494829146155, 1e-9);
  EXPECT_NEAR(fit->intercept_interval->high, 0.24410494829146226, 1e-9);
}

TEST(LineFit, RobustSlopeSurvivesOneDisturbedPass) {
  const auto fit = fit_line_robust(kCopies, std::vector<double>{1.6, 3.1, 6.3, 1.5, 3.2, 60.1});
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->slope, 1.6, 1e-12);
  EXPECT_NEAR(fit->intercept, -0.05, 1e-12);
}

TEST(LineFit, IsEmptyWithoutTwoValuesOfX) {
  EXPECT_FALSE(fit_line(std::vector<double>{2, 2}, std::vector<double>{1, 3}));
  EXPECT_FALSE(fit_line_robust(std::vector<double>{2, 2}, std::vector<double>{1, 3}));
  EXPECT_FALSE(fit_line(std::vector<double>{1, 2}, std::vector<double>{1}));
}

}  // namespace
}  // namespace opledger::core
