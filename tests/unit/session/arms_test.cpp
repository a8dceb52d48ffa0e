// Arms of a graph written by hand: four units, of which two read weights. Shares and copies are worked out in
// the test.
#include "session/arms.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace opledger::session {
namespace {

using nlohmann::json;

core::WorkloadGraph hand_graph() {
  core::WorkloadGraph graph;
  graph.workload = "pp8";
  graph.calls = {0};
  core::Graph one;
  one.signature = std::string(32, '0');
  one.tensors = {{"blk.0.a.weight", core::TensorKind::kWeight, "f32", {4, 4, 1, 1}, {}, 64, "CPU", ""},
                 {"cache", core::TensorKind::kKv, "f32", {4, 4, 1, 1}, {}, 640, "CPU", ""},
                 {"output.weight", core::TensorKind::kWeight, "f32", {4, 8, 1, 1}, {}, 128, "CPU", ""}};
  const std::vector<std::vector<int>> sources{{-1}, {0, -2}, {1}, {2, -3, -3}};
  for (const std::vector<int>& src : sources) {
    core::Node node;
    node.op = "MUL_MAT";
    node.src = src;
    one.nodes.push_back(node);
    one.units.push_back({{static_cast<int>(one.units.size())}, "single"});
  }
  graph.graphs = {one};
  return graph;
}

TEST(WeightBytes, CountEachWeightOnceAndNothingElse) {
  const core::WorkloadGraph graph = hand_graph();
  EXPECT_EQ(weight_bytes_of(graph.graphs[0], graph.graphs[0].units[0]), 64);
  EXPECT_EQ(weight_bytes_of(graph.graphs[0], graph.graphs[0].units[1]), 0);
  EXPECT_EQ(weight_bytes_of(graph.graphs[0], graph.graphs[0].units[3]), 128);
}

TEST(Copies, MakeWhatTheClocksMayDifferByFourHundredthsOfThePass) {
  EXPECT_EQ(copies_for(0.9), 1);   // 5% of 0.9 is 0.045
  EXPECT_EQ(copies_for(0.7), 2);   // 0.035
  EXPECT_EQ(copies_for(0.4), 2);   // 0.02
  EXPECT_EQ(copies_for(0.18), 5);  // 0.009
  EXPECT_EQ(copies_for(0.05), 8);  // 0.5% of the pass
  EXPECT_EQ(copies_for(0), 8);
}

TEST(Stride, LeavesOriginalsAndCopiesEquallyFarApart) {
  EXPECT_EQ(stride_for(30, 1, 1), 15);
  EXPECT_EQ(stride_for(30, 2, 1), 10);
  EXPECT_EQ(stride_for(40, 1, 4), 20);
  EXPECT_EQ(stride_for(30, 1, 4), 12);  // 15 would meet a layer of the other sort
  EXPECT_EQ(stride_for(4, 16, 1), 1);
  EXPECT_EQ(stride_for(1, 1, 1), 1);
}

TEST(BaseArms, AreThoseTheEngineHas) {
  const std::vector<ArmPlan> arms = base_arms({"stamp", "baseline", "other"});
  ASSERT_EQ(arms.size(), 2U);
  EXPECT_EQ(arms[0].id, "baseline");
  EXPECT_EQ(arms[1].id, "stamp");
}

TEST(ReplayArms, NameScopeWeightsAndCopies) {
  const std::vector<ArmPlan> arms =
      replay_arms({"attention", {{0, 1}}, 0.6}, {"replay", "stamped_replay"}, 30, 1);
  ASSERT_EQ(arms.size(), 3U);
  EXPECT_EQ(arms[0].id, "replay:attention:sibling:2");
  EXPECT_EQ(arms[1].id, "stamped_replay:attention:sibling:2");
  EXPECT_DOUBLE_EQ(arms[0].cost_ratio, 2.2);
  EXPECT_EQ(arms[0].to_json(true).dump(),
            R"({"copies":2,"id":"replay:attention:sibling:2","kind":"replay","scope":"attention",)"
            R"("units":[{"copies":2,"stride":10,"unit":[0,1],"weights":"sibling"}]})");
  EXPECT_FALSE(arms[0].to_json(false).contains("scope"));
}

TEST(WeightsWithoutASibling, AreTheOriginalsOwnForOneCopyAndShadowsForMore) {
  const core::WorkloadGraph graph = hand_graph();
  ArmPlan arm = replay_arms({"all", units_in_order(graph), 0.5}, {"replay"}, 4, 1).front();
  ASSERT_EQ(arm.copies, 2);
  ArmPlan single = replay_arms({"all", units_in_order(graph), 1.0}, {"replay"}, 4, 1).front();
  ASSERT_EQ(single.copies, 1);
  const json prepared{{"units",
                       {{{"unit", {0, 0}}, {"weights", "sibling"}},
                        {{"unit", {0, 1}}, {"weights", "same"}},
                        {{"unit", {0, 2}}, {"weights", "same"}},
                        {{"unit", {0, 3}}, {"weights", "same"}}}}};
  EXPECT_TRUE(settle_weights(graph, prepared, false, single));
  EXPECT_EQ(single.units[3].weights, "same");
  EXPECT_EQ(single.id, "replay:all:same:1");  // 128 of 192 bytes
  EXPECT_FALSE(settle_weights(graph, prepared, false, single));
  EXPECT_FALSE(settle_weights(graph, prepared, false, arm));
  EXPECT_TRUE(settle_weights(graph, prepared, true, arm));
  EXPECT_EQ(arm.units[0].weights, "sibling");
  EXPECT_EQ(arm.units[1].weights, "sibling");  // reads no weight: whatever it is asked for, it stays as it is
  EXPECT_EQ(arm.units[3].weights, "shadow");
  EXPECT_EQ(arm.id, "replay:all:shadow:2");
  EXPECT_FALSE(settle_weights(graph, prepared, true, arm));
}

json stamp_block(const std::vector<std::vector<int>>& unit_ns, const std::vector<int>& graph_ns) {
  json passes = json::array();
  for (const int ns : graph_ns) passes.push_back({{"graph_ns", ns}});
  return {{"unit_ns", unit_ns}, {"passes", passes}};
}

TEST(ScopeShares, AreSumsOverThePassLessThePrice) {
  // Price 10 each. Scope "x" holds units 0 and 2, "y" unit 1, "none" nothing; unit 3 is in "y".
  const std::vector<json> stamps{stamp_block({{110, 60, 210, 60}}, {440}),
                                 stamp_block({{110, 60, 210, 60}}, {440})};
  const std::vector<json> prices{stamp_block({{10, 10, 10, 10}}, {480})};
  const std::vector<ScopeShare> shares =
      scope_shares(hand_graph(), {0, 1, 0, 1}, {"x", "y", "none"}, stamps, prices);
  ASSERT_EQ(shares.size(), 2U);
  EXPECT_EQ(shares[0].scope, "x");
  EXPECT_DOUBLE_EQ(shares[0].share_ratio, 300.0 / 400.0);
  EXPECT_EQ(shares[0].units, (std::vector<core::UnitName>{{0, 0}, {0, 2}}));
  EXPECT_DOUBLE_EQ(shares[1].share_ratio, 100.0 / 400.0);
}

TEST(ReplayArms, CompareIncrementsOfSeveralCopiesAndOriginalsWithOne) {
  const std::vector<ArmPlan> arms =
      replay_arms({"attention", {{0, 1}}, 0.05}, {"replay", "stamped_replay"}, 30, 1);
  ASSERT_EQ(arms.size(), 3U);
  EXPECT_EQ(arms[0].id, "replay:attention:sibling:8");
  EXPECT_EQ(arms[1].id, "stamped_replay:attention:sibling:8");
  EXPECT_EQ(arms[2].id, "stamped_replay:attention:sibling:1");
  EXPECT_EQ(arms[2].units[0].copies, 1);
  EXPECT_EQ(arms[2].units[0].stride, 15);
  EXPECT_EQ(replay_arms({"dense_proj", {{0, 1}}, 0.9}, {"replay", "stamped_replay"}, 30, 1).size(), 2U);
}

TEST(SmallRows, ShareOneStampedReplayWithOneCopyOfEachUnit) {
  const std::vector<ScopeShare> rows{{"norm", {{0, 1}}, 0.02}, {"rope", {{0, 2}}, 0.01}};
  const std::optional<ArmPlan> arm = small_rows_arm(rows, {"replay", "stamped_replay"}, 30, 1);
  ASSERT_TRUE(arm);
  EXPECT_EQ(arm->id, "stamped_replay:small:sibling:1");
  ASSERT_EQ(arm->units.size(), 2U);
  EXPECT_EQ(arm->units[1].unit, (core::UnitName{0, 2}));
  EXPECT_EQ(arm->units[1].copies, 1);
  EXPECT_DOUBLE_EQ(arm->cost_ratio, 1.03);
  EXPECT_FALSE(small_rows_arm({}, {"stamped_replay"}, 30, 1));
  EXPECT_FALSE(small_rows_arm(rows, {"replay"}, 30, 1));
}

TEST(CopyExcess, IsOneCopyOverItsOriginalInAStampedPass) {
  ArmPlan arm = replay_arms({"x", {{0, 0}, {0, 2}}, 0.5}, {"stamped_replay"}, 30, 1).front();
  ASSERT_EQ(arm.copies, 2);
  // Price 10. Originals 100 and 200; two copies of each took 160 and 320: one costs 0.8 of its original.
  const BlocksByArm blocks{{"stamp", {stamp_block({{110, 60, 210, 60}}, {440})}},
                           {"price", {stamp_block({{10, 10, 10, 10}}, {480})}},
                           {arm.id, {{{"copy_ns", {{170, 0, 330, 0}}}}}}};
  EXPECT_NEAR(*copy_excess_ratio(hand_graph(), arm, blocks), -0.2, 1e-9);
  EXPECT_FALSE(copy_excess_ratio(hand_graph(), arm, {}));
}

TEST(ShadowTwin, ReadsShadowsWhereTheArmReadsSiblings) {
  const core::WorkloadGraph graph = hand_graph();
  const ArmPlan arm = replay_arms({"x", {{0, 0}, {0, 1}}, 0.9}, {"stamped_replay"}, 30, 1).front();
  const std::optional<ArmPlan> twin = bracket_twin(graph, arm);
  ASSERT_TRUE(twin);
  EXPECT_EQ(twin->id, "stamped_replay:x:shadow:1");
  EXPECT_EQ(twin->units[0].weights, "shadow");
  EXPECT_EQ(twin->units[1].weights, "sibling");  // reads no weight
  // Shadows are there because a weight has no sibling: its own is the nearer end.
  const std::optional<ArmPlan> own = bracket_twin(graph, *twin);
  ASSERT_TRUE(own);
  EXPECT_EQ(own->id, "stamped_replay:x:same:1");
  EXPECT_EQ(own->units[0].weights, "same");
  EXPECT_FALSE(bracket_twin(graph, replay_arms({"y", {{0, 1}}, 0.9}, {"stamped_replay"}, 30, 1).front()));
}

TEST(ScopeShares, AreUnknownWithoutStamps) {
  EXPECT_TRUE(scope_shares(hand_graph(), {0, 0, 0, 0}, {"x"}, {}, {}).empty());
}

}  // namespace
}  // namespace opledger::session
