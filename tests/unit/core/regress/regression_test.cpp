#include "core/regress/regression.h"

#include <gtest/gtest.h>
#include <sstream>
#include <string>

#include "../ledger/synthetic_record.h"

namespace opledger::core {
namespace {

using testing::base_and_head;
using testing::planted_rules;
using testing::PlantedSession;

Regression regression_in(const Record& record, double min_effect_ratio) {
  auto regression = regression_of(record, planted_rules(), min_effect_ratio);
  EXPECT_TRUE(regression.is_ok()) << (regression ? "" : regression.error().message);
  return regression ? std::move(*regression) : Regression{};
}

Regression regression_in(const PlantedSession& session, double min_effect_ratio = 0.02) {
  return regression_in(session.record(), min_effect_ratio);
}

TEST(Regression, ThePlantedRowIsNamedFirstAndWhatStayedIsNot) {
  const Regression regression = regression_in(base_and_head());
  EXPECT_EQ(regression.verdict(), Verdict::kSlower);
  ASSERT_EQ(regression.workloads.size(), 1U);
  const auto& moved = regression.workloads[0].moved;
  ASSERT_EQ(moved.size(), 2U);
  EXPECT_EQ(moved[0].row.scope, "attention");
  EXPECT_NEAR(*moved[0].row.gap.ms, 40.0, 1e-5);
  // Of a pass of 800 + 150 + 400 + 10 + 4 + 2 ms.
  EXPECT_NEAR(*moved[0].share_of_pass_ratio, 40.0 / 1366.0, 1e-9);
  EXPECT_EQ(moved[1].row.scope, "norm");
  EXPECT_NEAR(*moved[1].share_of_pass_ratio, -1.0 / 1366.0, 1e-9);
}

TEST(Regression, TheOtherWayRoundItIsAnImprovement) {
  PlantedSession session = base_and_head();
  std::swap(session.a, session.b);
  const Regression regression = regression_in(session);
  EXPECT_EQ(regression.verdict(), Verdict::kFaster);
  EXPECT_STREQ(regression_name(regression.verdict()), "improved");
  EXPECT_EQ(regression.workloads[0].moved[0].row.scope, "attention");
}

TEST(Regression, AnEngineAgainstItselfIsTheSameAndNoRowMoved) {
  PlantedSession session = base_and_head();
  session.a.unit_ns = session.b.unit_ns;
  const Regression regression = regression_in(session);
  EXPECT_EQ(regression.verdict(), Verdict::kSame);
  EXPECT_TRUE(regression.workloads[0].moved.empty());
  ASSERT_TRUE(regression.workloads[0].graph_changes);
  EXPECT_TRUE(regression.workloads[0].graph_changes->empty());
}

TEST(Regression, NothingIsToldBelowThreeLaunchGroups) {
  PlantedSession session = base_and_head();
  session.groups = 2;
  const Regression regression = regression_in(session);
  EXPECT_EQ(regression.verdict(), Verdict::kCannotTell);
  EXPECT_TRUE(regression.workloads[0].moved.empty());
}

TEST(Regression, WithoutGraphsTheirDifferenceIsUnknownAndNotNone) {
  std::istringstream lines(base_and_head().text());
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    if (line.find(R"("type":"graph")") == std::string::npos ||
        line.find(R"("side":"a")") == std::string::npos)
      text += line + "\n";
  }
  // Blocks with unit times need their graph: the session ended before any.
  text = text.substr(0, text.find(R"({"group")"));
  const auto record = parse_record(text, "cut.json");
  ASSERT_TRUE(record) << record.error().message;
  ASSERT_EQ(record->graph(Side::kA, "pp512"), nullptr);
  const Regression regression = regression_in(*record, 0.02);
  ASSERT_EQ(regression.workloads.size(), 1U);
  EXPECT_FALSE(regression.workloads[0].graph_changes);
  EXPECT_EQ(regression.verdict(), Verdict::kCannotTell);
}

WorkloadLedger ledger_with(double ratio, double low, double high, double gap_ms, double floor_ms) {
  WorkloadLedger workload;
  workload.ratio = ratio;
  workload.ratio_ci = {low, high};
  workload.gap.ms = gap_ms;
  workload.noise_floor_ms = floor_ms;
  return workload;
}

TEST(RegressionVerdict, NeedsTheIntervalTheLeastEffectAndTheNoiseFloor) {
  EXPECT_EQ(regression_verdict(ledger_with(1.05, 1.03, 1.07, 5, 1), 0.01), Verdict::kSlower);
  EXPECT_EQ(regression_verdict(ledger_with(1.05, 1.03, 1.07, 5, 6), 0.01), Verdict::kCannotTell);
  EXPECT_EQ(regression_verdict(ledger_with(1.05, 0.99, 1.11, 5, 1), 0.01), Verdict::kCannotTell);
  EXPECT_EQ(regression_verdict(ledger_with(1.05, 1.03, 1.07, 5, 1), 0.1), Verdict::kSame);
  EXPECT_EQ(regression_verdict(ledger_with(1.001, 0.999, 1.003, 0.1, 1), 0.01), Verdict::kSame);
  WorkloadLedger unknown = ledger_with(1.05, 1.03, 1.07, 5, 1);
  unknown.ratio_ci.reset();
  EXPECT_EQ(regression_verdict(unknown, 0.01), Verdict::kCannotTell);
}

TEST(RegressionVerdict, OfSeveralWorkloadsOneRegressionDecidesAndThenWhatCannotBeTold) {
  Regression regression;
  EXPECT_EQ(regression.verdict(), Verdict::kCannotTell);
  const auto verdict_with = [&](std::initializer_list<Verdict> verdicts) {
    regression.workloads.clear();
    for (const Verdict verdict : verdicts) regression.workloads.push_back({verdict, {}, {}});
    return regression.verdict();
  };
  EXPECT_EQ(verdict_with({Verdict::kCannotTell, Verdict::kSlower, Verdict::kFaster}), Verdict::kSlower);
  EXPECT_EQ(verdict_with({Verdict::kFaster, Verdict::kCannotTell}), Verdict::kCannotTell);
  EXPECT_EQ(verdict_with({Verdict::kSame, Verdict::kFaster}), Verdict::kFaster);
  EXPECT_EQ(verdict_with({Verdict::kSame, Verdict::kSame}), Verdict::kSame);
}

}  // namespace
}  // namespace opledger::core
