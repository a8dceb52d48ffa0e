// Scopes over graphs whose bytes and FLOPs are chosen by hand: intensity above 8 FLOP per byte means that
// FLOPs bind; a category under 3% of what binds is swallowed.
#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "../graph/graph_builder.h"
#include "core/scopes/scopes.h"
#include "shipped_rules.h"

namespace opledger::core {
namespace {

using test::GraphBuilder;
using test::one_call;

std::vector<std::string> names_of(const Scoping& scoping) {
  std::vector<std::string> names;
  for (const auto& scope : scoping.scopes) names.push_back(scope.name);
  return names;
}

const std::string& scope_name(const Scoping& scoping, size_t input, size_t unit) {
  return scoping.scopes.at(static_cast<size_t>(scoping.unit_scope.at(input).at(unit))).name;
}

/// A product of `product` bytes and FLOPs with a rope of `rope` bytes and FLOPs, in one unit or in two.
WorkloadGraph product_and_rope(int64_t product_bytes, int64_t product_flop, int64_t rope_bytes,
                               int64_t rope_flop, bool is_one_unit, const std::string& workload = "pp4") {
  GraphBuilder b;
  const int product = b.node("MUL_MAT", {b.weight("blk.0.attn_q.weight"), b.tensor("x", TensorKind::kInput)});
  b.work(product_bytes, product_flop);
  const int rope = b.node("ROPE", {product});
  b.work(rope_bytes, rope_flop);
  if (is_one_unit) b.unit({product, rope});
  b.single_units();
  return one_call(b.graph, workload);
}

TEST(Scopes, StayApartWhereUnitsAre) {
  const auto rules = test::shipped_rules("llama.cpp");
  const auto graph = product_and_rope(100, 100, 100, 100, false);
  const auto scoping = scope_units({{&graph, rules.get()}}, RowKind::kCategory);
  ASSERT_TRUE(scoping) << scoping.error().message;
  EXPECT_EQ(names_of(*scoping), (std::vector<std::string>{"dense_proj", "rope"}));
  EXPECT_EQ(scope_name(*scoping, 0, 0), "dense_proj");
  EXPECT_EQ(scope_name(*scoping, 0, 1), "rope");
  EXPECT_TRUE(scoping->scopes[0].notes.empty());
}

TEST(Scopes, MergeOnBothSidesAndInAllWorkloadsWhereOneUnitSpansTwo) {
  const auto rules = test::shipped_rules("llama.cpp");
  const auto apart_prefill = product_and_rope(100, 100, 100, 100, false, "pp4");
  const auto apart_decode = product_and_rope(100, 100, 100, 100, false, "tg1@4");
  const auto fused = product_and_rope(100, 100, 100, 100, true, "tg1@4");
  const auto scoping = scope_units(
      {{&apart_prefill, rules.get(), "a"}, {&apart_decode, rules.get(), "a"}, {&fused, rules.get(), "b"}},
      RowKind::kCategory);
  ASSERT_TRUE(scoping) << scoping.error().message;
  EXPECT_EQ(names_of(*scoping), (std::vector<std::string>{"dense_proj+rope"}));
  EXPECT_EQ(scoping->scopes[0].categories, (std::vector<std::string>{"dense_proj", "rope"}));
  EXPECT_EQ(scoping->unit_scope, (std::vector<std::vector<int>>{{0, 0}, {0, 0}, {0}}));
  ASSERT_EQ(scoping->scopes[0].notes.size(), 1U);
  EXPECT_NE(scoping->scopes[0].notes[0].find("unit [0, 0] of b tg1@4"), std::string::npos)
      << scoping->scopes[0].notes[0];
}

TEST(Scopes, SwallowWhatIsMinorInBytesWhereBytesBind) {
  const auto rules = test::shipped_rules("llama.cpp");
  // 2 of 100 bytes, although half of the FLOPs; 100 FLOPs over 100 bytes is under 8.
  const auto fused = product_and_rope(98, 50, 2, 50, true);
  const auto scoping = scope_units({{&fused, rules.get()}}, RowKind::kCategory);
  ASSERT_TRUE(scoping) << scoping.error().message;
  EXPECT_EQ(names_of(*scoping), (std::vector<std::string>{"dense_proj"}));
  ASSERT_EQ(scoping->scopes[0].notes.size(), 1U);
  EXPECT_EQ(scoping->scopes[0].notes[0], "1 units hold up to 2.0% of their bytes in rope, counted here");
}

TEST(Scopes, SwallowWhatIsMinorInFlopsWhereFlopsBind) {
  const auto rules = test::shipped_rules("llama.cpp");
  // Half of the bytes, but 1% of the FLOPs; 10000 FLOPs over 100 bytes is above 8.
  const auto fused = product_and_rope(50, 9900, 50, 100, true);
  const auto scoping = scope_units({{&fused, rules.get()}}, RowKind::kCategory);
  ASSERT_TRUE(scoping) << scoping.error().message;
  EXPECT_EQ(names_of(*scoping), (std::vector<std::string>{"dense_proj"}));
  EXPECT_EQ(scoping->scopes[0].notes.at(0), "1 units hold up to 1.0% of their FLOPs in rope, counted here");
}

TEST(Scopes, DoNotSwallowThreePercent) {
  const auto rules = test::shipped_rules("llama.cpp");
  const auto fused = product_and_rope(97, 0, 3, 0, true);
  const auto scoping = scope_units({{&fused, rules.get()}}, RowKind::kCategory);
  ASSERT_TRUE(scoping);
  EXPECT_EQ(names_of(*scoping), (std::vector<std::string>{"dense_proj+rope"}));
}

TEST(Scopes, MergeWhereNothingSaysWhatIsMinor) {
  const auto rules = test::shipped_rules("llama.cpp");
  const auto fused = product_and_rope(0, 0, 0, 0, true);
  const auto scoping = scope_units({{&fused, rules.get()}}, RowKind::kCategory);
  ASSERT_TRUE(scoping);
  EXPECT_EQ(names_of(*scoping), (std::vector<std::string>{"dense_proj+rope"}));
}

WorkloadGraph state_and_copy() {
  GraphBuilder b;
  const int state = b.tensor("cache_s_l0", TensorKind::kState);
  const int x = b.tensor("x", TensorKind::kInput);
  b.node("GET_ROWS", {state, x});
  b.node("DELTA_NET", {x});
  b.writer("CPY", {x, state}, Lasting::kState);
  b.node("CONT", {x});
  b.single_units();
  return one_call(b.graph);
}

TEST(Scopes, NameAStageAndLeaveCopiesOutsideItAlone) {
  const auto rules = test::shipped_rules("ik_llama.cpp");
  const auto graph = state_and_copy();
  const auto scoping = scope_units({{&graph, rules.get()}}, RowKind::kCategory);
  ASSERT_TRUE(scoping) << scoping.error().message;
  EXPECT_EQ(names_of(*scoping), (std::vector<std::string>{"copy_transpose", "linear_attention"}));
  EXPECT_EQ(scoping->scopes[1].categories,
            (std::vector<std::string>{"copy_transpose", "linear_attention", "state_write"}));
  EXPECT_EQ(scoping->unit_scope[0], (std::vector<int>{1, 1, 1, 0}));
  EXPECT_NE(scoping->scopes[1].notes.at(0).find("stage linear_attention"), std::string::npos);
}

/// ik's run of three products that share an input, and llama.cpp's three products.
WorkloadGraph three_products(bool is_run) {
  GraphBuilder b;
  const int x = b.tensor("x", TensorKind::kInput);
  for (const char* role : {"attn_q", "attn_k", "attn_v"}) {
    b.node("MUL_MAT", {b.weight("blk.0." + std::string(role) + ".weight"), x});
    b.work(100, 100);
  }
  if (is_run) b.unit({0, 1, 2});
  b.node("MUL_MAT", {b.weight("blk.0.attn_output.weight"), x});
  b.work(100, 100);
  b.single_units();
  return one_call(b.graph);
}

TEST(ScopesByRole, MergeTheRolesOfARunOnBothSides) {
  const auto ik_rules = test::shipped_rules("ik_llama.cpp");
  const auto rules = test::shipped_rules("llama.cpp");
  const auto run = three_products(true);
  const auto apart = three_products(false);
  const auto scoping = scope_units({{&apart, rules.get()}, {&run, ik_rules.get()}}, RowKind::kRole);
  ASSERT_TRUE(scoping) << scoping.error().message;
  EXPECT_EQ(names_of(*scoping), (std::vector<std::string>{"attn_k+attn_q+attn_v", "attn_output"}));
  EXPECT_EQ(scoping->unit_scope, (std::vector<std::vector<int>>{{0, 0, 0, 1}, {0, 1}}));
}

TEST(ScopesByRole, GiveWeightlessNodesTheRoleOfTheirNeighbours) {
  const auto rules = test::shipped_rules("llama.cpp");
  GraphBuilder b;
  const int norm = b.node("RMS_NORM", {b.tensor("x", TensorKind::kInput)});
  const int normed = b.node("MUL", {norm, b.weight("blk.0.ffn_norm.weight")});
  const int up = b.node("MUL_MAT", {b.weight("blk.0.ffn_up.weight"), normed});
  b.node("GLU:SWIGLU", {up, up});
  b.single_units();
  const auto graph = one_call(b.graph);
  const auto scoping = scope_units({{&graph, rules.get()}}, RowKind::kRole);
  ASSERT_TRUE(scoping) << scoping.error().message;
  EXPECT_EQ(names_of(*scoping), (std::vector<std::string>{"ffn_norm", "ffn_up"}));
  EXPECT_EQ(scoping->unit_scope[0], (std::vector<int>{0, 0, 1, 1}));
}

TEST(ScopesByRole, MergeAFusedOpsTwoRolesEvenWhereOneCouldBeMinor) {
  const auto rules = test::shipped_rules("ik_llama.cpp");
  GraphBuilder b;
  b.node("FUSED_UP_GATE", {b.weight("blk.0.ffn_up.weight"), b.weight("blk.0.ffn_gate.weight"),
                           b.tensor("x", TensorKind::kInput)});
  b.work(100, 100);
  b.single_units();
  const auto graph = one_call(b.graph);
  const auto scoping = scope_units({{&graph, rules.get()}}, RowKind::kRole);
  ASSERT_TRUE(scoping);
  EXPECT_EQ(names_of(*scoping), (std::vector<std::string>{"ffn_gate+ffn_up"}));
}

TEST(ScopesByLayer, FollowWeightsNamesAndOrder) {
  const auto rules = test::shipped_rules("llama.cpp");
  GraphBuilder b;
  const int x = b.node("GET_ROWS", {b.weight("token_embd.weight"), b.tensor("t", TensorKind::kInput)});
  const int norm = b.node("RMS_NORM", {x});
  const int normed = b.node("MUL", {norm, b.weight("blk.0.attn_norm.weight")});
  const int named = b.node("ADD", {normed, x}, "l_out-1");
  const int unnamed = b.node("UNARY:SILU", {named});
  const int last = b.node("RMS_NORM", {unnamed}, "norm");
  const int output = b.node("MUL", {last, b.weight("output_norm.weight")});
  b.node("MUL_MAT", {b.weight("output.weight"), output});
  b.single_units();
  const auto graph = one_call(b.graph);
  const auto scoping = scope_units({{&graph, rules.get()}}, RowKind::kLayer);
  ASSERT_TRUE(scoping) << scoping.error().message;
  EXPECT_EQ(names_of(*scoping), (std::vector<std::string>{"input", "layer 0", "layer 1", "output"}));
  EXPECT_EQ(scoping->unit_scope[0], (std::vector<int>{0, 1, 1, 2, 2, 3, 3, 3}));
}

TEST(ScopesByOp, MatchAFusedOpWithThePartsThatTheOtherEngineRuns) {
  const auto rules = test::shipped_rules("llama.cpp");
  const auto ik_rules = test::shipped_rules("ik_llama.cpp");
  GraphBuilder apart;
  const int x = apart.tensor("x", TensorKind::kInput);
  const int norm = apart.node("RMS_NORM", {x});
  apart.node("MUL", {norm, apart.weight("blk.0.attn_norm.weight")});
  apart.node("ADD", {norm, x});
  apart.single_units();
  GraphBuilder fused;
  fused.node("FUSED_RMS_NORM",
             {fused.tensor("x", TensorKind::kInput), fused.weight("blk.0.attn_norm.weight")});
  fused.single_units();
  const auto a = one_call(apart.graph);
  const auto b = one_call(fused.graph);
  const auto scoping = scope_units({{&a, rules.get()}, {&b, ik_rules.get()}}, RowKind::kOp);
  ASSERT_TRUE(scoping) << scoping.error().message;
  EXPECT_EQ(names_of(*scoping), (std::vector<std::string>{"elementwise:ADD", "norm:MUL+norm:RMS_NORM"}));
  EXPECT_EQ(scoping->unit_scope, (std::vector<std::vector<int>>{{1, 1, 0}, {1}}));
}

TEST(Scopes, NameTheOpsThatHaveNoRule) {
  const auto rules = test::shipped_rules("llama.cpp");
  GraphBuilder b;
  b.node("WIN_PART", {});
  b.node("WIN_PART", {});
  b.single_units();
  const auto graph = one_call(b.graph);
  const auto scoping = scope_units({{&graph, rules.get()}}, RowKind::kCategory);
  ASSERT_TRUE(scoping);
  EXPECT_EQ(scoping->scopes.at(0).name, "unsorted");
  EXPECT_EQ(scoping->scopes.at(0).notes.at(0), "no rule for WIN_PART (2)");
}

TEST(Scopes, RefuseAUnitThatHoldsOnlyViews) {
  const auto rules = test::shipped_rules("llama.cpp");
  GraphBuilder b;
  const int view = b.view(b.tensor("x", TensorKind::kInput));
  b.unit({view});
  const auto graph = one_call(b.graph);
  const auto scoping = scope_units({{&graph, rules.get(), "llama"}}, RowKind::kCategory);
  ASSERT_FALSE(scoping);
  EXPECT_NE(scoping.error().message.find("llama pp4"), std::string::npos) << scoping.error().message;
}

}  // namespace
}  // namespace opledger::core
