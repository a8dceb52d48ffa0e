// Categories by the shipped rules. Graphs are written by hand after what the engines' model builders emit;
// expected categories come from what each op computes there.
#include <gtest/gtest.h>
#include <initializer_list>
#include <string>
#include <vector>

#include "../graph/graph_builder.h"
#include "core/scopes/scopes.h"
#include "shipped_rules.h"

namespace opledger::core {
namespace {

using test::GraphBuilder;

class Sorted {
 public:
  Sorted(const std::string& family, const Graph& graph)
      : categories_(categories_of(*test::shipped_rules(family), graph)),
        stages_(stages_of(*test::shipped_rules(family), graph)) {}
  const std::string& operator[](int node) const { return categories_.at(static_cast<size_t>(node)); }
  [[nodiscard]] const std::string& stage(int node) const { return stages_.at(static_cast<size_t>(node)); }

 private:
  std::vector<std::string> categories_;
  std::vector<std::string> stages_;
};

TEST(Categories, WithoutTheRulesOfOneItsNodesFallToLaterRulesOrAreUnsorted) {
  GraphBuilder b;
  const int norm = b.node("RMS_NORM", {b.node("ADD", {b.tensor("x", TensorKind::kInput)})});
  const auto broken = without_category(*test::shipped_rules("llama.cpp"), "norm");
  const std::vector<std::string> categories = categories_of(*broken, b.graph);
  EXPECT_EQ(categories.at(static_cast<size_t>(norm)), kUnsorted);
  EXPECT_EQ(categories.at(0), "elementwise");
}

TEST(Categories, SortADenseLayerOfLlamaCpp) {
  GraphBuilder b;
  const int tokens = b.tensor("inp_tokens", TensorKind::kInput);
  const int embedding = b.node("GET_ROWS", {b.weight("token_embd.weight"), tokens});
  const int norm = b.node("RMS_NORM", {embedding});
  const int normed = b.node("MUL", {norm, b.weight("blk.0.attn_norm.weight")});
  const int q = b.node("MUL_MAT", {b.weight("blk.0.attn_q.weight"), normed});
  const int biased = b.node("ADD", {q, b.weight("blk.0.attn_q.bias")});
  const int q_rope = b.node("ROPE", {b.view(biased), tokens});
  const int q_scaled = b.node("SCALE", {q_rope});
  const int cache = b.tensor("cache_k_l0", TensorKind::kKv);
  const int write = b.writer("SET_ROWS", {b.view(q_rope), tokens, cache}, Lasting::kKv);
  const int flash = b.node("FLASH_ATTN_EXT", {b.view(q_scaled), b.view(cache), b.view(cache)});
  const int wo = b.node("MUL_MAT", {b.weight("blk.0.attn_output.weight"), b.view(flash)});
  const int picked = b.node("GET_ROWS", {wo, b.tensor("inp_out_ids", TensorKind::kInput)});
  const int residual = b.node("ADD", {picked, embedding});
  const int up = b.node("MUL_MAT", {b.weight("blk.0.ffn_up.weight"), residual});
  const int gate = b.node("MUL_MAT", {b.weight("blk.0.ffn_gate.weight"), residual});
  const int glu = b.node("GLU:SWIGLU", {gate, up});
  const int head = b.node("MUL_MAT", {b.weight("output.weight"), glu});
  const Sorted sorted("llama.cpp", b.graph);
  EXPECT_EQ(sorted[embedding], "embedding");
  EXPECT_EQ(sorted[norm], "norm");
  EXPECT_EQ(sorted[normed], "norm");
  EXPECT_EQ(sorted[q], "dense_proj");
  EXPECT_EQ(sorted[biased], "dense_proj");
  EXPECT_EQ(sorted[q_rope], "rope");
  EXPECT_EQ(sorted[q_scaled], "attention");
  EXPECT_EQ(sorted[write], "kv_write");
  EXPECT_EQ(sorted[flash], "attention");
  EXPECT_EQ(sorted[flash - 1], "view");
  EXPECT_EQ(sorted[picked], "copy_transpose");
  EXPECT_EQ(sorted[residual], "elementwise");
  EXPECT_EQ(sorted[glu], "dense_proj");
  EXPECT_EQ(sorted[head], "lm_head");
}

TEST(Categories, TakeATiedEmbeddingForTheHeadWhereItIsMultiplied) {
  GraphBuilder b;
  const int weight = b.weight("token_embd.weight");
  const int rows = b.node("GET_ROWS", {weight, b.tensor("inp_tokens", TensorKind::kInput)});
  const int head = b.node("MUL_MAT", {weight, rows});
  const int capped = b.node("UNARY:TANH", {b.node("SCALE", {head})});
  for (const char* family : {"llama.cpp", "ik_llama.cpp"}) {
    const Sorted sorted(family, b.graph);
    EXPECT_EQ(sorted[rows], "embedding");
    EXPECT_EQ(sorted[head], "lm_head");
    EXPECT_EQ(sorted[capped], "lm_head");
  }
}

TEST(Categories, KnowAttentionWithoutFlashAttention) {
  GraphBuilder b;
  const int keys = b.tensor("cache_k_l0", TensorKind::kKv);
  const int values = b.tensor("cache_v_l0", TensorKind::kKv);
  const int q = b.node("ROPE", {b.tensor("x", TensorKind::kInput)});
  const int kq = b.node("MUL_MAT", {b.view(keys), b.view(q)});
  const int soft_max = b.node("SOFT_MAX", {kq, b.tensor("KQ_mask", TensorKind::kInput)});
  const int turned = b.node("CONT", {b.view(values)});
  const int kqv = b.node("MUL_MAT", {turned, soft_max});
  const int merged = b.node("CONT", {b.view(kqv)});
  for (const char* family : {"llama.cpp", "ik_llama.cpp"}) {
    const Sorted sorted(family, b.graph);
    for (const int node : {kq, soft_max, turned, kqv, merged}) EXPECT_EQ(sorted[node], "attention") << node;
  }
}

struct MoeLayer {
  int logits, probs, sorted, weights, sum, normed, up, act, down, weighted, first_add, second_add,
      shared_gate, shared_sigmoid, shared, gated, with_shared, residual;
};

/// The mixture of llama.cpp's qwen35moe: three experts used, a shared expert with its gate.
MoeLayer add_moe_layer(GraphBuilder& b) {
  MoeLayer n{};
  const int x = b.node("MUL", {b.node("RMS_NORM", {b.tensor("x", TensorKind::kInput)}),
                               b.weight("blk.0.post_attention_norm.weight")});
  n.logits = b.node("MUL_MAT", {b.weight("blk.0.ffn_gate_inp.weight"), x});
  n.probs = b.node("SOFT_MAX", {n.logits});
  n.sorted = b.node("ARGSORT", {n.probs});
  const int top = b.view(n.sorted);
  n.weights = b.node("GET_ROWS", {b.view(n.probs), top});
  n.sum = b.node("CLAMP", {b.node("SUM_ROWS", {b.view(n.weights)})});
  n.normed = b.node("DIV", {b.view(n.weights), n.sum});
  n.up = b.node("MUL_MAT_ID", {b.weight("blk.0.ffn_up_exps.weight"), b.view(x), top});
  const int gate = b.node("MUL_MAT_ID", {b.weight("blk.0.ffn_gate_exps.weight"), b.view(x), top});
  n.act = b.node("GLU:SWIGLU", {gate, n.up});
  n.down = b.node("MUL_MAT_ID", {b.weight("blk.0.ffn_down_exps.weight"), n.act, top});
  n.weighted = b.node("MUL", {n.down, b.view(n.normed)});
  n.first_add = b.node("ADD", {b.view(n.weighted), b.view(n.weighted)});
  n.second_add = b.node("ADD", {n.first_add, b.view(n.weighted)});
  n.shared = b.node("MUL_MAT", {b.weight("blk.0.ffn_down_shexp.weight"), x});
  n.shared_gate = b.node("MUL_MAT", {b.weight("blk.0.ffn_gate_inp_shexp.weight"), x});
  n.shared_sigmoid = b.node("UNARY:SIGMOID", {n.shared_gate});
  n.gated = b.node("MUL", {n.shared, n.shared_sigmoid});
  n.with_shared = b.node("ADD", {n.second_add, n.gated});
  n.residual = b.node("ADD", {n.with_shared, x});
  return n;
}

TEST(Categories, SortAMixtureByDataFlow) {
  GraphBuilder b;
  const MoeLayer n = add_moe_layer(b);
  const Sorted sorted("llama.cpp", b.graph);
  for (const int node : {n.logits, n.probs, n.sorted, n.weights, n.sum, n.normed}) {
    EXPECT_EQ(sorted[node], "moe_router") << node;
  }
  for (const int node : {n.up, n.act, n.down}) EXPECT_EQ(sorted[node], "moe_experts") << node;
  for (const int node : {n.weighted, n.first_add, n.second_add})
    EXPECT_EQ(sorted[node], "moe_combine") << node;
}

TEST(Categories, AreNotFooledByTheSharedExpertsGate) {
  GraphBuilder b;
  const MoeLayer n = add_moe_layer(b);
  const Sorted sorted("llama.cpp", b.graph);
  EXPECT_EQ(sorted[n.shared_gate], "dense_proj");
  EXPECT_EQ(sorted[n.shared], "dense_proj");
  for (const int node : {n.shared_sigmoid, n.gated, n.with_shared, n.residual}) {
    EXPECT_EQ(sorted[node], "elementwise") << node;
  }
}

TEST(Categories, KnowFusedOpsOfIkByWhatTheyCompute) {
  GraphBuilder b;
  const int x =
      b.node("FUSED_RMS_NORM", {b.tensor("x", TensorKind::kInput), b.weight("blk.0.ffn_norm.weight")});
  const int logits = b.node("MUL_MAT", {b.weight("blk.0.ffn_gate_inp.weight"), x});
  const int ids = b.node("ARGSORT", {b.view(b.node("SOFT_MAX", {logits}))});
  const int weights = b.node("GET_ROWS", {b.view(ids - 1), b.view(ids)});
  const int experts = b.node(
      "MOE_FUSED_UP_GATE",
      {b.weight("blk.0.ffn_up_exps.weight"), b.weight("blk.0.ffn_gate_exps.weight"), b.view(x), b.view(ids)});
  const int down = b.node("MUL_MAT_ID", {b.weight("blk.0.ffn_down_exps.weight"), experts, b.view(ids)});
  const int combined = b.node("MUL_MULTI_ADD", {down, b.view(weights)});
  const int up_gate = b.node(
      "FUSED_UP_GATE", {b.weight("blk.0.ffn_up_shexp.weight"), b.weight("blk.0.ffn_gate_shexp.weight"), x});
  const int shared = b.node("MUL_MAT", {b.weight("blk.0.ffn_down_shexp.weight"), up_gate});
  const int gate = b.node("MUL_MAT", {b.weight("blk.0.ffn_gate_inp_shexp.weight"), x});
  const int gated = b.node("FUSED_MUL_UNARY", {gate, shared});
  const int with_shared = b.node("ADD", {combined, gated});
  const int gate_proj = b.node("MUL_MAT", {b.weight("blk.1.ffn_gate.weight"), x});
  const int activated =
      b.node("FUSED_MUL_UNARY", {gate_proj, b.node("MUL_MAT", {b.weight("blk.1.ffn_up.weight"), x})});
  const int rope = b.node("ROPE_FAST", {x});
  const Sorted sorted("ik_llama.cpp", b.graph);
  EXPECT_EQ(sorted[x], "norm");
  EXPECT_EQ(sorted[logits], "moe_router");
  EXPECT_EQ(sorted[weights], "moe_router");
  EXPECT_EQ(sorted[experts], "moe_experts");
  EXPECT_EQ(sorted[combined], "moe_combine");
  EXPECT_EQ(sorted[up_gate], "dense_proj");
  EXPECT_EQ(sorted[gated], "elementwise");
  EXPECT_EQ(sorted[with_shared], "elementwise");
  EXPECT_EQ(sorted[activated], "dense_proj");
  EXPECT_EQ(sorted[rope], "rope");
}

struct LinearLayer {
  int read_state, qkv, concat, conv_write, conv, silu, l2, beta, decay, delta, state_write, norm, gated, out,
      after;
};

/// A gated delta net as llama.cpp builds it; the node order is its execution order.
LinearLayer add_linear_layer(GraphBuilder& b) {
  LinearLayer n{};
  const int x = b.node(
      "MUL", {b.node("RMS_NORM", {b.tensor("x", TensorKind::kInput)}), b.weight("blk.0.attn_norm.weight")});
  const int conv_cache = b.tensor("cache_r_l0", TensorKind::kState);
  const int state_cache = b.tensor("cache_s_l0", TensorKind::kState);
  n.read_state = b.node("GET_ROWS", {b.view(conv_cache), b.tensor("ids", TensorKind::kInput)});
  n.qkv = b.node("MUL_MAT", {b.weight("blk.0.attn_qkv.weight"), x});
  n.concat = b.node("CONCAT", {b.view(n.read_state), b.view(n.qkv)});
  n.conv_write = b.writer("CPY", {b.view(n.concat), b.view(conv_cache)}, Lasting::kState);
  n.conv = b.node("SSM_CONV", {n.concat, b.weight("blk.0.ssm_conv1d.weight")});
  n.silu = b.node("UNARY:SILU", {n.conv});
  n.l2 = b.node("SCALE", {b.node("RMS_NORM", {b.view(n.silu)})});
  n.beta = b.node("MUL_MAT", {b.weight("blk.0.ssm_beta.weight"), x});
  n.decay = b.node("MUL", {b.node("UNARY:SOFTPLUS", {n.beta}), b.weight("blk.0.ssm_a")}, "gate-0");
  n.delta = b.node("GATED_DELTA_NET", {n.l2, n.l2, n.decay});
  n.state_write = b.writer("CPY", {b.view(n.delta), b.view(state_cache)}, Lasting::kState);
  n.norm = b.node("MUL", {b.node("RMS_NORM", {b.view(n.delta)}), b.weight("blk.0.ssm_norm.weight")});
  n.gated = b.node("MUL", {n.norm, n.silu});
  n.out = b.node("MUL_MAT", {b.weight("blk.0.ssm_out.weight"), b.view(n.gated)});
  n.after = b.node("ADD", {n.out, x});
  return n;
}

void expect_all(const Sorted& sorted, std::initializer_list<int> nodes, const std::string& category,
                const std::string& stage) {
  for (const int node : nodes) {
    EXPECT_EQ(sorted[node], category) << node;
    EXPECT_EQ(sorted.stage(node), stage) << node;
  }
}

TEST(Categories, KeepALinearAttentionLayerTogetherAsAStage) {
  GraphBuilder b;
  const LinearLayer n = add_linear_layer(b);
  const Sorted sorted("llama.cpp", b.graph);
  expect_all(sorted, {n.conv, n.silu, n.l2, n.decay, n.delta, n.norm, n.gated}, "linear_attention",
             "linear_attention");
  expect_all(sorted, {n.read_state, n.concat}, "copy_transpose", "linear_attention");
  expect_all(sorted, {n.conv_write, n.state_write}, "state_write", "linear_attention");
  expect_all(sorted, {n.qkv, n.beta, n.out}, "dense_proj", "");
  expect_all(sorted, {n.after}, "elementwise", "");
}

TEST(Categories, SeeNoLinearLayerWhereAFusedQkvIsNotClosed) {
  GraphBuilder b;
  const int x = b.tensor("x", TensorKind::kInput);
  const int qkv = b.node("MUL_MAT", {b.weight("blk.0.attn_qkv.weight"), x});
  const int silu = b.node("UNARY:SILU", {b.view(qkv)});
  b.node("MUL_MAT", {b.weight("blk.1.attn_qkv.weight"), silu});
  const int copy = b.node("CONT", {b.view(x)});
  const int out = b.node("MUL_MAT", {b.weight("blk.1.ssm_out.weight"), copy});
  const Sorted sorted("llama.cpp", b.graph);
  EXPECT_EQ(sorted[silu], "elementwise");
  EXPECT_EQ(sorted.stage(copy), "linear_attention");
  EXPECT_EQ(sorted[out], "dense_proj");
}

TEST(Categories, DoNotDependOnNodeNames) {
  GraphBuilder b;
  const int gate = b.node("UNARY:SIGMOID", {b.tensor("x", TensorKind::kInput)}, "gate-3");
  EXPECT_EQ(Sorted("ik_llama.cpp", b.graph)[gate], "elementwise");
}

TEST(Categories, CallAnOpWithoutARuleUnsorted) {
  GraphBuilder b;
  const int node = b.node("WIN_PART", {});
  EXPECT_EQ(Sorted("llama.cpp", b.graph)[node], "unsorted");
}

}  // namespace
}  // namespace opledger::core
