// Rows and totals of planted sessions. Truths are the planted milliseconds; intervals were computed from them
// in Python (t = 4.302652729749464 over three groups; paired log-ratios for the gaps and the floors).
#include <gtest/gtest.h>

#include "synthetic_record.h"

namespace opledger::core {
namespace {

using testing::analysed;
using testing::PlantedSession;
using testing::two_engines;

const Row& row_named(const WorkloadLedger& ledger, const std::string& scope) {
  for (const Row& row : ledger.rows) {
    if (row.scope == scope) return row;
  }
  static const Row none;
  ADD_FAILURE() << "no row " << scope;
  return none;
}

void expect_measured(const Measured& measured, double ms, double low, double high) {
  ASSERT_TRUE(measured.ms && measured.ci_ms);
  EXPECT_NEAR(*measured.ms, ms, 1e-5);
  EXPECT_NEAR((*measured.ci_ms)[0], low, 1e-5);
  EXPECT_NEAR((*measured.ci_ms)[1], high, 1e-5);
}

TEST(Rows, EqualThePlantedTruthOncePricesAreTakenOff) {
  const WorkloadLedger ledger = analysed(two_engines());
  const Row& dense = row_named(ledger, "dense_proj");
  expect_measured(dense.a, 1200.0, 1185.0951737294984, 1214.9048262705016);
  expect_measured(dense.b, 210.0, 207.23958754475407, 212.76041245524593);
  expect_measured(dense.gap, 990.0, 988.4608209898361, 991.535263662401);
  const Row& norm = row_named(ledger, "norm");
  expect_measured(norm.gap, 2.0, 1.9617727628433532, 2.0382270333500685);
  EXPECT_EQ(dense.evidence, "stamp");
  EXPECT_EQ(dense.nodes_a, 2);
}

TEST(Rows, TotalsTakeTheirIntervalFromThePairedLogRatios) {
  const WorkloadLedger ledger = analysed(two_engines());
  expect_measured(ledger.gap, 1036.0, 1033.7114460530006, 1038.2836286071392);
  expect_measured(ledger.graph_gap, 1035.0, 1032.7176821184692, 1037.2774011463616);
  ASSERT_TRUE(ledger.ratio && ledger.ratio_ci);
  EXPECT_NEAR(*ledger.ratio, 4.139398145131872, 1e-9);
  EXPECT_NEAR((*ledger.ratio_ci)[0], 4.121634640648568, 1e-8);
  EXPECT_NEAR((*ledger.ratio_ci)[1], 4.157238207126706, 1e-8);
  EXPECT_EQ(ledger.verdict, "slower");
  EXPECT_NEAR(*ledger.a.tokens_per_s, 374.81698389458273, 1e-6);
  EXPECT_NEAR(*ledger.noise_floor_ms, 8.41210372241078, 1e-6);
  EXPECT_EQ(ledger.a.launch_groups, 3);
}

TEST(Rows, AreSortedByGapAndTheirLinesAddUpToIt) {
  const WorkloadLedger ledger = analysed(two_engines());
  ASSERT_EQ(ledger.rows.size(), 3U);
  EXPECT_EQ(ledger.rows[0].scope, "dense_proj");
  EXPECT_EQ(ledger.rows[2].scope, "norm");
  double sum = *ledger.wall_minus_graph_gap.ms + *ledger.unexplained_gap.ms;
  for (const Row& row : ledger.rows) sum += *row.gap.ms;
  EXPECT_NEAR(sum, 1036.0, 1e-6);
  expect_measured(ledger.unexplained_gap, 3.0, 2.9624903431237457, 3.0375096568762543);
}

TEST(Rows, AreToldAtTheSpeedOfTheirGroupsBaselines) {
  PlantedSession session = two_engines();
  session.rounds = 5;
  session.a.drift_ppm = 50000;  // every round runs 5% slower than the last, and only the first has a stamp
  session.stamp_rounds = 1;
  const WorkloadLedger ledger = analysed(session);
  // Dense is 1200 of the 1364 ms that a pass takes at any speed.
  EXPECT_NEAR(*row_named(ledger, "dense_proj").a.ms / *ledger.a.graph.ms, 1200.0 / 1364.0, 1e-6);
  EXPECT_GT(*ledger.a.graph.ms, 1364.0 * 1.05);
}

TEST(Rows, AreToldAtTheSpeedOfTheBaselineThatAlternatedWithThem) {
  PlantedSession session = two_engines();
  session.rounds = 5;
  session.is_interleaved = true;  // the next baseline is the next round's
  session.a.drift_ppm = 50000;
  session.stamp_rounds = 1;
  const WorkloadLedger ledger = analysed(session);
  EXPECT_NEAR(*row_named(ledger, "dense_proj").a.ms / *ledger.a.graph.ms, 1200.0 / 1364.0, 1e-6);
}

TEST(Rows, BarrierCostIsWhatEmptyNodesAdd) {
  // 4 units of 300 ns each.
  const WorkloadLedger ledger = analysed(two_engines());
  EXPECT_NEAR(*ledger.barrier_a.ms, 0.0012, 1e-9);
}

TEST(Rows, BarrierCostOfTwoLaunchesIsUnknown) {
  PlantedSession session = two_engines();
  session.groups = 2;
  session.a.group_ppm = session.b.group_ppm = {0, 0};
  const WorkloadLedger ledger = analysed(session);
  EXPECT_TRUE(ledger.a.graph.ms);
  EXPECT_FALSE(ledger.barrier_a.ms);
  EXPECT_FALSE(ledger.barrier_gap.ms);
}

TEST(Rows, AreRealOnlyAboveTheFloorOfTheirOwnLaunches) {
  PlantedSession session = two_engines();
  const WorkloadLedger told = analysed(session);
  EXPECT_TRUE(row_named(told, "dense_proj").is_real);
  EXPECT_NEAR(*row_named(told, "dense_proj").noise_floor_ms, 6.99355321261616, 1e-6);
  EXPECT_NEAR(*row_named(told, "dense_proj").share_of_gap, 990.0 / 1036.0, 1e-9);
  // All launches drift by 5%, and the two of a pair differ by 0.5%: the interval (half of it 14.8 ms)
  // excludes 0, but an engine compared with itself in three such turns may show 34.2 ms.
  session.b = session.a;
  session.b.name = "ik";
  session.b.unit_ns = {780000000, 150000000, 400000000, 10000000};
  session.a.group_ppm = {0, 52500, -52500};
  session.b.group_ppm = {0, 47500, -47500};
  const WorkloadLedger noisy = analysed(session);
  const Row& dense = row_named(noisy, "dense_proj");
  ASSERT_TRUE(dense.gap.ci_ms);
  EXPECT_GT((*dense.gap.ci_ms)[0], 0.0);
  EXPECT_LT(*dense.gap.ms, *dense.noise_floor_ms);
  EXPECT_FALSE(dense.is_real);
  // Drift alone, which slows both, hides nothing.
  session.b.group_ppm = session.a.group_ppm;
  EXPECT_TRUE(row_named(analysed(session), "dense_proj").is_real);
}

TEST(Rows, BelowThreeLaunchGroupsHaveNoIntervalAndNothingIsTold) {
  PlantedSession session = two_engines();
  session.groups = 2;
  const WorkloadLedger ledger = analysed(session);
  EXPECT_EQ(ledger.verdict, "cannot tell");
  EXPECT_FALSE(ledger.gap.ci_ms);
  EXPECT_FALSE(ledger.ratio_ci);
  EXPECT_TRUE(ledger.gap.ms);
  for (const Row& row : ledger.rows) {
    EXPECT_FALSE(row.gap.ci_ms);
    EXPECT_FALSE(row.is_real);
    EXPECT_FALSE(row.share_of_gap);
  }
}

TEST(Rows, DecodeFiguresArePerToken) {
  PlantedSession session = two_engines();
  session.is_decode = true;
  session.tokens = 16;
  const WorkloadLedger ledger = analysed(session);
  EXPECT_NEAR(*row_named(ledger, "dense_proj").a.ms, 1200.0 / 16, 1e-6);
  EXPECT_NEAR(*ledger.gap.ms, 1036.0 / 16, 1e-6);
  EXPECT_NEAR(*ledger.a.tokens_per_s, 16 * 1000 / 1366.0, 1e-6);
}

TEST(Rows, AreEmptyNotBiasedWhenThePriceIsUnknown) {
  PlantedSession session = two_engines();
  session.has_price = false;
  const WorkloadLedger ledger = analysed(session);
  for (const Row& row : ledger.rows) EXPECT_FALSE(row.a.ms);
  EXPECT_FALSE(ledger.unexplained_a.ms);
  EXPECT_NEAR(*ledger.gap.ms, 1036.0, 1e-6);
}

TEST(Rows, ShareOfAGapThatMayBeZeroIsUnknown) {
  PlantedSession session = two_engines();
  session.b.unit_ns = session.a.unit_ns;
  session.b.rest_ns = session.a.rest_ns;
  session.b.outside_ns = session.a.outside_ns;
  const WorkloadLedger ledger = analysed(session);
  for (const Row& row : ledger.rows) EXPECT_FALSE(row.share_of_gap);
  EXPECT_EQ(ledger.verdict, "same");
}

TEST(Rows, AnInterruptedSessionGivesWhatIsThere) {
  const std::string whole = two_engines().text();
  int analysed_count = 0;
  for (size_t at = whole.find('\n'); at != std::string::npos; at = whole.find('\n', at + 1)) {
    const auto record = parse_record(whole.substr(0, at + 1), "cut.json");
    ASSERT_TRUE(record) << record.error().message;
    const auto ledger = analyse_scoped(*record, testing::planted_scoping(ledger_inputs(*record).size()), {});
    ASSERT_TRUE(ledger) << ledger.error().message;
    EXPECT_EQ(ledger->end_reason, at + 1 < whole.size() ? "killed" : "complete");
    ++analysed_count;
  }
  EXPECT_GT(analysed_count, 50);
}

TEST(Rows, EveryColumnTellsOfTheSameLaunches) {
  PlantedSession session = two_engines();
  session.groups = 4;
  session.a.group_ppm = {0, 0, 0, 500000};  // the fourth launch of a was slow, and b had none
  session.b.group_ppm = {0, 0, 0, 0};
  session.b.missing_groups = {4};
  const WorkloadLedger ledger = analysed(session);
  EXPECT_NEAR(*ledger.a.wall.ms, 1366.0, 1e-6);
  EXPECT_EQ(ledger.a.launch_groups, 3);
  EXPECT_NEAR(*ledger.gap.ms, 1366.0 - 330.0, 1e-6);
  ASSERT_FALSE(ledger.not_solid.empty());
  EXPECT_NE(ledger.not_solid.front().find("llama: launch group 4 left out"), std::string::npos);
}

TEST(Rows, WhatHappenedToTheSessionIsNotSolid) {
  std::string text = two_engines().text();
  const Event event{"note", std::nullopt, "processes alternate", "", std::nullopt, ""};
  const Event of_row{"budget", std::nullopt, "replay of norm", "pp512", std::nullopt, ""};
  const size_t end = text.find(end_line("complete"));
  text.insert(end, record_line(event) + "\n" + record_line(of_row) + "\n");
  const auto record = parse_record(text, "events.json");
  ASSERT_TRUE(record) << record.error().message;
  const auto ledger = analyse_scoped(*record, testing::planted_scoping(2), {});
  ASSERT_TRUE(ledger);
  const auto& caveats = ledger->workloads.front().not_solid;
  EXPECT_NE(std::find(caveats.begin(), caveats.end(), "processes alternate"), caveats.end());
  EXPECT_EQ(std::find(caveats.begin(), caveats.end(), "replay of norm"), caveats.end());
}

TEST(Rows, UnitTimesThatDoNotFitTheGraphAreRefused) {
  std::string text = two_engines().text();
  const size_t at = text.find("\"unit_ns\":[[");
  text.replace(at, 12, "\"unit_ns\":[[1,");
  const auto record = parse_record(text, "bad.json");
  ASSERT_TRUE(record) << record.error().message;
  const auto ledger = analyse_scoped(*record, testing::planted_scoping(2), {});
  ASSERT_FALSE(ledger);
  EXPECT_NE(ledger.error().message.find("has 5 unit times, the graph of pp512 has 4 units"),
            std::string::npos)
      << ledger.error().message;
}

}  // namespace
}  // namespace opledger::core
