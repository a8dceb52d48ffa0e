#include "judge/verdict.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace opledger::judge {
namespace {

// Eight pairs around a ratio, 0.1% apart at most.
std::vector<double> pairs_at(double ratio) {
  std::vector<double> logs;
  for (const double off : {-0.0010, -0.0006, -0.0003, -0.0001, 0.0001, 0.0003, 0.0006, 0.0010})
    logs.push_back(std::log(ratio) + off);
  return logs;
}

TEST(Verdict, IsOfAAgainstB) {
  EXPECT_EQ(judge_pairs(pairs_at(0.98), 0.005).verdict, Verdict::kFaster);
  EXPECT_EQ(judge_pairs(pairs_at(1.02), 0.005).verdict, Verdict::kSlower);
  EXPECT_NEAR(judge_pairs(pairs_at(1.02), 0.005).ratio, 1.02, 1e-9);
}

TEST(Verdict, IsSameWhereTheWholeIntervalIsBelowTheLeastEffect) {
  EXPECT_EQ(judge_pairs(pairs_at(1.001), 0.005).verdict, Verdict::kSame);
  // The interval excludes 1, but nobody wants to know of a thousandth.
  EXPECT_EQ(judge_pairs(pairs_at(1.002), 0.005).verdict, Verdict::kSame);
  EXPECT_EQ(judge_pairs(pairs_at(1.002), 0).verdict, Verdict::kSlower);
}

TEST(Verdict, CannotBeToldWhereTheIntervalHoldsMoreThanOneAnswer) {
  std::vector<double> logs = pairs_at(1.01);
  for (size_t i = 0; i < logs.size(); ++i) logs[i] += i % 2 == 0 ? 0.03 : -0.03;
  EXPECT_EQ(judge_pairs(logs, 0.005).verdict, Verdict::kCannotTell);
  // Told from 1, but not from the least effect.
  EXPECT_EQ(judge_pairs(pairs_at(1.0049), 0.005).verdict, Verdict::kCannotTell);
  EXPECT_EQ(judge_pairs(std::vector<double>{0.02, 0.02}, 0.005).verdict, Verdict::kCannotTell);
  EXPECT_EQ(judge_pairs({}, 0.005).verdict, Verdict::kCannotTell);
}

TEST(Verdict, OneWildPairDoesNotDecide) {
  std::vector<double> logs = pairs_at(0.98);
  logs.front() = 1.0;
  EXPECT_EQ(judge_pairs(logs, 0.005).verdict, Verdict::kFaster);
}

TEST(Verdict, ExitCodesFollowWhatIsExpected) {
  EXPECT_EQ(exit_code_of(Verdict::kFaster, Expectation::kNone), 0);
  EXPECT_EQ(exit_code_of(Verdict::kSame, Expectation::kNone), 0);
  EXPECT_EQ(exit_code_of(Verdict::kSlower, Expectation::kNone), 1);
  EXPECT_EQ(exit_code_of(Verdict::kFaster, Expectation::kFaster), 0);
  EXPECT_EQ(exit_code_of(Verdict::kSame, Expectation::kFaster), 1);
  EXPECT_EQ(exit_code_of(Verdict::kSlower, Expectation::kFaster), 1);
  EXPECT_EQ(exit_code_of(Verdict::kSame, Expectation::kNotSlower), 0);
  EXPECT_EQ(exit_code_of(Verdict::kSlower, Expectation::kNotSlower), 1);
  for (const Expectation expectation : {Expectation::kNone, Expectation::kFaster, Expectation::kNotSlower})
    EXPECT_EQ(exit_code_of(Verdict::kCannotTell, expectation), 4);
}

}  // namespace
}  // namespace opledger::judge
