// Expected values: scipy.stats.t.ppf.
#include "core/stats/student.h"

#include <gtest/gtest.h>

namespace opledger::core {
namespace {

TEST(StudentT, UpperQuantilesEqualScipys) {
  EXPECT_NEAR(*student_t_quantile(0.975, 1), 12.706204736174694, 1e-9);
  EXPECT_NEAR(*student_t_quantile(0.975, 2), 4.302652729749462, 1e-11);
  EXPECT_NEAR(*student_t_quantile(0.975, 3), 3.1824463052837078, 1e-11);
  EXPECT_NEAR(*student_t_quantile(0.975, 4), 2.7764451051977934, 1e-11);
  EXPECT_NEAR(*student_t_quantile(0.975, 5), 2.5705818356363146, 1e-11);
  EXPECT_NEAR(*student_t_quantile(0.975, 8), 2.306004135204166, 1e-11);
  EXPECT_NEAR(*student_t_quantile(0.975, 29), 2.045229642132703, 1e-11);
  EXPECT_NEAR(*student_t_quantile(0.975, 100), 1.9839715185235518, 1e-11);
  EXPECT_NEAR(*student_t_quantile(0.975, 301), 1.9678765312856952, 1e-11);
  EXPECT_NEAR(*student_t_quantile(0.9, 5), 1.4758840488244815, 1e-11);
}

TEST(StudentT, IsSymmetricAroundZero) {
  EXPECT_NEAR(*student_t_quantile(0.025, 8), -2.306004135204166, 1e-11);
  EXPECT_DOUBLE_EQ(*student_t_quantile(0.5, 8), 0.0);
}

TEST(StudentT, IsEmptyWhereItIsNotDefined) {
  EXPECT_FALSE(student_t_quantile(0.975, 0));
  EXPECT_FALSE(student_t_quantile(1.0, 3));
  EXPECT_FALSE(student_t_quantile(0.0, 3));
}

}  // namespace
}  // namespace opledger::core
