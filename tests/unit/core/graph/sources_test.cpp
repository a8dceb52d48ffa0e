// Roots of sources and what weight names say. Names are those that GGUF files and the engines use.
#include "core/graph/sources.h"

#include <gtest/gtest.h>

#include "graph_builder.h"

namespace opledger::core {
namespace {

TEST(RootOf, FollowsViewsToTheNodeThatComputed) {
  test::GraphBuilder b;
  const int input = b.tensor("x", TensorKind::kInput);
  const int sum = b.node("ADD", {input, input});
  const int outer = b.view(b.view(sum));
  EXPECT_EQ(root_of(b.graph, outer).node, sum);
  EXPECT_EQ(root_of(b.graph, outer).tensor, nullptr);
}

TEST(RootOf, FollowsViewsToTheTensorThatHolds) {
  test::GraphBuilder b;
  const int cache = b.tensor("cache_k_l3", TensorKind::kKv);
  const int view = b.view(cache);
  EXPECT_EQ(root_of(b.graph, view).node, -1);
  EXPECT_EQ(root_of(b.graph, view).tensor->name, "cache_k_l3");
}

TEST(RootOf, StopsAtAViewWithoutASource) {
  test::GraphBuilder b;
  const int view = b.node("NONE", {});
  b.graph.nodes.back().is_view = true;
  EXPECT_EQ(root_of(b.graph, view).node, view);
}

TEST(WeightsOf, AreListedOnceInSourceOrder) {
  test::GraphBuilder b;
  const int up = b.weight("blk.0.ffn_up.weight");
  const int gate = b.weight("blk.0.ffn_gate.weight");
  const int input = b.tensor("x", TensorKind::kInput);
  const int node = b.node("FUSED_UP_GATE", {up, b.view(gate), input, up});
  const auto weights = weights_of(b.graph, b.graph.nodes[static_cast<size_t>(node)]);
  ASSERT_EQ(weights.size(), 2U);
  EXPECT_EQ(weights[0]->name, "blk.0.ffn_up.weight");
  EXPECT_EQ(weights[1]->name, "blk.0.ffn_gate.weight");
}

TEST(RoleOf, DropsLayerAndSuffix) {
  EXPECT_EQ(role_of("blk.7.attn_q.weight"), "attn_q");
  EXPECT_EQ(role_of("blk.17.ffn_gate_inp_shexp.weight"), "ffn_gate_inp_shexp");
  EXPECT_EQ(role_of("output.weight"), "output");
  EXPECT_EQ(role_of("blk.0.ssm_a"), "ssm_a");
  EXPECT_EQ(role_of("blk.0.ssm_dt.bias"), "ssm_dt.bias");
}

TEST(LayerOfTensor, ReadsWeightsAndCaches) {
  EXPECT_EQ(layer_of_tensor("blk.12.attn_q.weight"), 12);
  EXPECT_EQ(layer_of_tensor("cache_k_l3"), 3);
  EXPECT_EQ(layer_of_tensor("cache_s_l10 (view)"), 10);
  EXPECT_EQ(layer_of_tensor("output_norm.weight"), std::nullopt);
  EXPECT_EQ(layer_of_tensor("blk.x.attn_q.weight"), std::nullopt);
  EXPECT_EQ(layer_of_tensor("my_long_name"), std::nullopt);
}

TEST(LayerOfNode, ReadsTheNumberAfterTheLastDash) {
  EXPECT_EQ(layer_of_node("ffn_inp-7"), 7);
  EXPECT_EQ(layer_of_node("Qcur-12 (reshaped) (permuted)"), 12);
  EXPECT_EQ(layer_of_node("result_norm"), std::nullopt);
  EXPECT_EQ(layer_of_node("a-b"), std::nullopt);
  EXPECT_EQ(layer_of_node("node_-1x"), std::nullopt);
}

}  // namespace
}  // namespace opledger::core
