// Pairs of small graphs that differ in one known way: what is said of each was worked out by hand.
#include "core/regress/graph_difference.h"

#include <gtest/gtest.h>

#include "../graph/graph_builder.h"

namespace opledger::core {
namespace {

using test::GraphBuilder;
using test::one_call;

std::shared_ptr<const RuleSet> rules() {
  auto parsed =
      parse_rules(R"({"schema":"opledger-rules","version":1,"family":"f","rules":[)"
                  R"({"op":"MUL_MAT","category":"dense_proj"},{"op":["RMS_NORM","MUL"],"category":"norm"}]})",
                  "rules.json");
  EXPECT_TRUE(parsed.is_ok()) << (parsed ? "" : parsed.error().message);
  return parsed ? *parsed : nullptr;
}

/// Per layer a norm of two nodes and a product; `type` is the weights'.
struct Planted {
  int layers = 2;
  std::string type = "q4_0";
  bool is_fused = true;
  bool has_copy = false;
  int64_t tokens = 8;
  std::string device;
};

WorkloadGraph graph_of(const Planted& planted) {
  GraphBuilder g;
  int x = g.tensor("inp", TensorKind::kInput, {32, planted.tokens, 1, 1});
  for (int layer = 0; layer < planted.layers; ++layer) {
    const std::string blk = "blk." + std::to_string(layer) + ".";
    const int scale = g.weight(blk + "attn_norm.weight", {32, 1, 1, 1});
    const int matrix = g.weight(blk + "attn_q.weight", {32, 64, 1, 1});
    g.graph.tensors.back().type = planted.type;
    const int normed = g.node("RMS_NORM", {x}, "", {32, planted.tokens, 1, 1});
    const int scaled = g.node("MUL", {normed, scale}, "", {32, planted.tokens, 1, 1});
    if (planted.is_fused) g.unit({normed, scaled});
    x = g.node("MUL_MAT", {matrix, scaled}, "", {64, planted.tokens, 1, 1});
    if (planted.has_copy) g.node("CONT", {g.view(x)}, "", {64, planted.tokens, 1, 1});
  }
  g.single_units();
  for (Node& node : g.graph.nodes) node.device = planted.device;
  WorkloadGraph graph = one_call(g.graph);
  graph.probe_ran = true;
  return graph;
}

std::vector<GraphChange> changes_of(const WorkloadGraph& base, const WorkloadGraph& head) {
  const auto set = rules();
  return graph_changes({&base, set.get()}, {&head, set.get()});
}

std::vector<GraphChange> changes_of(const Planted& base, const Planted& head) {
  return changes_of(graph_of(base), graph_of(head));
}

TEST(GraphChanges, AreNoneBetweenEqualGraphsInWhateverOrder) {
  EXPECT_TRUE(changes_of(Planted{}, Planted{}).empty());
  GraphBuilder first;
  GraphBuilder second;
  for (GraphBuilder* g : {&first, &second}) {
    const int x = g->tensor("inp", TensorKind::kInput);
    for (const char* op : {"ADD", "SCALE"})
      g->node(g == &first ? op : (*op == 'A' ? "SCALE" : "ADD"), {x}, op);
    g->single_units();
  }
  EXPECT_TRUE(changes_of(one_call(first.graph), one_call(second.graph)).empty());
}

TEST(GraphChanges, NameAnOperationThatOnlyHeadExecutes) {
  Planted head;
  head.has_copy = true;
  const auto changes = changes_of(Planted{}, head);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].kind, GraphChangeKind::kAdded);
  EXPECT_EQ(changes[0].op, "CONT");
  EXPECT_EQ(changes[0].category, "unsorted");
  EXPECT_EQ(changes[0].role, "");
  EXPECT_EQ(changes[0].per_pass, 2);
  EXPECT_FALSE(changes[0].before);
  // Through the view, whose shape is the builder's default.
  EXPECT_EQ(changes[0].after, "f32 [1] -> f32 [64,8]");
}

TEST(GraphChanges, NameWhatHeadNoLongerExecutesByItsRole) {
  Planted head;
  head.layers = 1;
  const auto changes = changes_of(Planted{}, head);
  ASSERT_EQ(changes.size(), 3U);  // MUL, MUL_MAT and RMS_NORM of one layer
  EXPECT_EQ(changes[1].kind, GraphChangeKind::kRemoved);
  EXPECT_EQ(changes[1].op, "MUL_MAT");
  EXPECT_EQ(changes[1].category, "dense_proj");
  EXPECT_EQ(changes[1].role, "attn_q");
  EXPECT_EQ(changes[1].per_pass, 1);
  EXPECT_EQ(changes[1].before, "q4_0 [32,64], f32 [32,8] -> f32 [64,8]");
  EXPECT_FALSE(changes[1].after);
}

TEST(GraphChanges, TakeAnotherTypeForAChangeAndNotForALossAndAGain) {
  Planted head;
  head.type = "q8_0";
  const auto changes = changes_of(Planted{}, head);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].kind, GraphChangeKind::kChanged);
  EXPECT_EQ(changes[0].per_pass, 2);
  EXPECT_EQ(changes[0].before, "q4_0 [32,64], f32 [32,8] -> f32 [64,8]");
  EXPECT_EQ(changes[0].after, "q8_0 [32,64], f32 [32,8] -> f32 [64,8]");
}

TEST(GraphChanges, SayWhatIsNoLongerFusedWithoutRepeatingTheShapes) {
  Planted head;
  head.is_fused = false;
  const auto changes = changes_of(Planted{}, head);
  ASSERT_EQ(changes.size(), 2U);  // MUL and RMS_NORM
  for (const GraphChange& change : changes) {
    EXPECT_EQ(change.kind, GraphChangeKind::kChanged);
    EXPECT_EQ(change.per_pass, 2);
    EXPECT_EQ(change.before, "one unit RMS_NORM+MUL");
    EXPECT_EQ(change.after, "a unit of its own");
  }
}

TEST(GraphChanges, DoNotTakeAMissingProbeForALostFusion) {
  Planted apart;
  apart.is_fused = false;
  WorkloadGraph head = graph_of(apart);
  head.probe_ran = false;
  EXPECT_TRUE(changes_of(graph_of(Planted{}), head).empty());
}

TEST(GraphChanges, SayThatWorkMovedToAnotherDevice) {
  Planted base;
  base.layers = 1;
  base.device = "CPU";
  Planted head = base;
  head.device = "BLAS";
  const auto changes = changes_of(base, head);
  ASSERT_EQ(changes.size(), 3U);
  EXPECT_EQ(changes[0].before, "CPU");
  EXPECT_EQ(changes[0].after, "BLAS");
}

TEST(GraphChanges, PairEqualShapesFirstWhereSomeAreLost) {
  // Base: two layers, fused. Head: one layer, apart: one norm lost its fusion, the other is gone.
  Planted head;
  head.layers = 1;
  head.is_fused = false;
  const auto changes = changes_of(Planted{}, head);
  int changed = 0;
  int removed = 0;
  for (const GraphChange& change : changes) {
    EXPECT_EQ(change.per_pass, 1);
    changed += change.kind == GraphChangeKind::kChanged ? 1 : 0;
    removed += change.kind == GraphChangeKind::kRemoved ? 1 : 0;
  }
  EXPECT_EQ(changed, 2);  // MUL and RMS_NORM of the layer that stays
  EXPECT_EQ(removed, 3);  // the other layer
}

TEST(GraphChanges, CountEveryGraphCallOfAPass) {
  WorkloadGraph base = graph_of(Planted{});
  Planted copying;
  copying.has_copy = true;
  WorkloadGraph head = graph_of(copying);
  base.calls = head.calls = {0, 0, 0};
  const auto changes = changes_of(base, head);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].per_pass, 6);  // two layers, three calls
}

}  // namespace
}  // namespace opledger::core
