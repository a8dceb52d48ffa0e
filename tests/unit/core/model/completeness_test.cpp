// Completeness on a model small enough to write down: one layer, embedding 8, 2 query heads of 4 over 1 KV
// head, feed-forward 16, vocabulary 32. Every FLOP is worked out by hand beside its node.
#include "core/model/completeness.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>

#include "../graph/graph_builder.h"
#include "../scopes/shipped_rules.h"

namespace opledger::core {
namespace {

using test::GraphBuilder;

constexpr int64_t kTokens = 4;

ModelFacts tiny_model() {
  ModelFacts facts;
  facts.architecture = "llama";
  facts.metadata = {{"llama.block_count", 1.0},
                    {"llama.embedding_length", 8.0},
                    {"llama.feed_forward_length", 16.0},
                    {"llama.attention.head_count", 2.0},
                    {"llama.attention.head_count_kv", 1.0},
                    {"llama.vocab_size", 32.0}};
  facts.tensors = {{"token_embd.weight", "f32", {8, 32, 1, 1}, 1024},
                   {"output.weight", "f32", {8, 32, 1, 1}, 1024},
                   {"blk.0.attn_norm.weight", "f32", {8, 1, 1, 1}, 32},
                   {"blk.0.attn_q.weight", "f32", {8, 8, 1, 1}, 256},
                   {"blk.0.attn_k.weight", "f32", {8, 4, 1, 1}, 128},
                   {"blk.0.attn_v.weight", "f32", {8, 4, 1, 1}, 128},
                   {"blk.0.attn_output.weight", "f32", {8, 8, 1, 1}, 256},
                   {"blk.0.ffn_gate.weight", "f32", {8, 16, 1, 1}, 512},
                   {"blk.0.ffn_up.weight", "f32", {8, 16, 1, 1}, 512},
                   {"blk.0.ffn_down.weight", "f32", {16, 8, 1, 1}, 512}};
  return facts;
}

/// The layer that the facts describe, for `rows` tokens over `cells` cached ones; `output_rows` reach the
/// head.
class TinyGraph {
 public:
  explicit TinyGraph(int64_t rows = kTokens, int64_t cells = 256, int64_t output_rows = 1) {
    const int tokens = b.tensor("inp_tokens", TensorKind::kInput);
    const int x = b.node("GET_ROWS", {weight("token_embd.weight"), tokens});
    const int normed = b.node("MUL", {b.node("RMS_NORM", {x}), weight("blk.0.attn_norm.weight")});
    q_ = product("attn_q", normed, 8, 8, rows);           // 2 * 8 * 8 = 128 a row
    const int k = product("attn_k", normed, 8, 4, rows);  // 64
    product("attn_v", normed, 8, 4, rows);                // 64
    const int cache = b.tensor("cache_k_l0", TensorKind::kKv);
    b.writer("SET_ROWS", {k, tokens, cache}, Lasting::kKv);
    const int flash = b.node("FLASH_ATTN_EXT",
                             {b.view(q_, {4, rows, 2, 1}), b.view(cache, {4, cells, 1, 1}), cache}, "fa-0");
    b.work(0, int64_t{2} * 2 * (4 + 4) * rows * cells);        // 2 heads of 4 and 4: 32 for each row and cell
    const int wo = product("attn_output", flash, 8, 8, rows);  // 128
    const int gate = product("ffn_gate", wo, 8, 16, output_rows);                                // 256
    const int up = product("ffn_up", wo, 8, 16, output_rows);                                    // 256
    const int down = product("ffn_down", b.node("GLU:SWIGLU", {gate, up}), 16, 8, output_rows);  // 256
    b.node("MUL_MAT", {weight("output.weight"), down}, "result_output", {32, output_rows, 1, 1});
    b.work(0, int64_t{2} * 8 * 32 * output_rows);  // 512 a row
    b.single_units();
  }

  int weight(const std::string& name) {
    const ModelFacts facts = tiny_model();
    const ModelTensor* tensor = facts.tensor(name);
    return b.weight(name, tensor->ne, tensor->bytes);
  }
  int product(const std::string& role, int input, int64_t columns, int64_t outputs, int64_t rows) {
    const int node =
        b.node("MUL_MAT", {weight("blk.0." + role + ".weight"), input}, role, {outputs, rows, 1, 1});
    b.work(0, 2 * columns * outputs * rows);
    return node;
  }
  [[nodiscard]] int q() const { return q_; }

  GraphBuilder b;

 private:
  int q_ = 0;
};

Completeness judge(const WorkloadGraph& graph, const ModelFacts& facts = tiny_model(),
                   const std::string& family = "llama.cpp", PassShape shape = {kTokens, 0}) {
  return check_complete(graph, *test::shipped_rules(family), facts, shape);
}

std::string joined(const Completeness& result) {
  std::string text = result.reason;
  for (const auto& problem : result.problems) text += "\n" + problem;
  return text;
}

void expect_problem(const Completeness& result, const std::string& part) {
  EXPECT_TRUE(result.ran);
  EXPECT_FALSE(result.complete);
  EXPECT_NE(joined(result).find(part), std::string::npos) << part << " not in:" << joined(result);
}

TEST(Completeness, HoldsForAWholePass) {
  const Completeness result = judge(test::one_call(TinyGraph().b.graph));
  EXPECT_TRUE(result.complete) << joined(result);
  EXPECT_EQ(result.file_weight_bytes, 4384);
  EXPECT_EQ(result.read_weight_bytes, 4384);
  EXPECT_EQ(result.output_rows, 1);
  EXPECT_EQ(result.attention_layers, 1);
  // By hand: 4 rows of q, k, v, output (384), one row of the feed-forward (768) and of the head (512), and
  // 4 rows over 256 cells at 32: 1536 + 768 + 512 + 32768.
  EXPECT_EQ(result.expected_flop, 35584);
  EXPECT_EQ(result.counted_flop, 35584);
}

TEST(Completeness, HoldsWhereTheSameRowsComeInTwoCalls) {
  WorkloadGraph graph = test::one_call(TinyGraph(2, 256, 2).b.graph);
  graph.calls = {0, 0};
  const Completeness result = judge(graph);
  EXPECT_TRUE(result.complete) << joined(result);
  EXPECT_EQ(result.output_rows, 4);
}

TEST(Completeness, FailsWhenOneOfTheCallsIsHidden) {
  // One layer is also the last one, where rows may be dropped: the rows of attention still tell.
  const WorkloadGraph graph = test::one_call(TinyGraph(2, 256, 2).b.graph);
  expect_problem(judge(graph), "layer 0: attention of 4 rows x heads, expected 8");
}

TEST(Completeness, AllowsDroppedRowsInTheLastLayerOnly) {
  // With a second layer in the metadata, the graph's one layer is no longer the last.
  ModelFacts facts = tiny_model();
  facts.metadata["llama.block_count"] = 2.0;
  const Completeness result = judge(test::one_call(TinyGraph().b.graph), facts);
  expect_problem(result, "layer 0: ffn_gate meets 1 rows, expected 4");
  expect_problem(result, "layer 1: attn_q meets 0 rows, expected 4");
}

TEST(Completeness, FailsWhenANodeIsInNoUnit) {
  TinyGraph tiny;
  tiny.b.graph.units.pop_back();
  const Completeness result = judge(test::one_call(tiny.b.graph));
  expect_problem(result, "result_output) is in 0 units");
  expect_problem(result, "no node multiplies with the output weight");
  expect_problem(result, "weight output.weight of the file (1024 bytes) is read by no unit");
}

TEST(Completeness, FailsWhenAWeightOfTheFileIsNotRead) {
  ModelFacts facts = tiny_model();
  facts.tensors.push_back({"blk.0.extra.weight", "f32", {8, 8, 1, 1}, 256});
  expect_problem(judge(test::one_call(TinyGraph().b.graph), facts), "blk.0.extra.weight");
}

TEST(Completeness, ListsUnreadRopeFactorsWithoutFailing) {
  ModelFacts facts = tiny_model();
  facts.tensors.push_back({"rope_freqs.weight", "f32", {2, 1, 1, 1}, 8});
  const Completeness result = judge(test::one_call(TinyGraph().b.graph), facts);
  EXPECT_TRUE(result.complete) << joined(result);
  ASSERT_EQ(result.unread_tensors.size(), 1U);
  EXPECT_EQ(result.file_weight_bytes - result.read_weight_bytes, 8);
}

TEST(Completeness, FailsWhenAReadWeightIsNotTheFiles) {
  TinyGraph tiny;
  tiny.b.graph.tensors.at(3).bytes = 255;
  EXPECT_EQ(tiny.b.graph.tensors.at(3).name, "blk.0.attn_q.weight");
  expect_problem(judge(test::one_call(tiny.b.graph)),
                 "blk.0.attn_q.weight has 255 bytes in the engine and 256");
  tiny.b.graph.tensors.at(3).name = "blk.0.unheard_of.weight";
  expect_problem(judge(test::one_call(tiny.b.graph)),
                 "blk.0.unheard_of.weight is read but is not in the file");
}

TEST(Completeness, ExplainsWeightsThatTheEngineMerged) {
  TinyGraph tiny;
  const int x = tiny.b.tensor("x", TensorKind::kInput);
  GraphBuilder b;
  b.graph = tiny.b.graph;
  // The engine's one product for q, k and v: 8 x 16, 4 rows; the three of the file leave the graph.
  for (size_t i = 0; i < 3; ++i) {
    Node& node = b.graph.nodes.at(static_cast<size_t>(tiny.q()) + i);
    node.src = {x};
    node.op = "SCALE";
    node.flop = 0;
  }
  const int merged = b.weight("blk.0.attn_qkv.weight", {8, 16, 1, 1}, 512);
  b.node("MUL_MAT", {merged, x}, "qkv", {16, kTokens, 1, 1});
  b.work(0, int64_t{2} * 8 * 16 * kTokens);
  b.unit({static_cast<int>(b.graph.nodes.size()) - 1});
  const Completeness result = judge(test::one_call(b.graph));
  EXPECT_TRUE(result.complete) << joined(result);
  ASSERT_EQ(result.notes.size(), 1U);
  EXPECT_EQ(result.notes[0], "1 weights attn_qkv were made of the file's attn_q, attn_k, attn_v");
}

TEST(Completeness, FailsWhenAttentionSeesFewerCellsThanAreCached) {
  expect_problem(judge(test::one_call(TinyGraph(4, 256).b.graph), tiny_model(), "llama.cpp", {kTokens, 300}),
                 "attention over 256 cells, 304 tokens are cached");
}

TEST(Completeness, FailsWhenTheCountedFlopsAreOff) {
  TinyGraph tiny;
  // 2% of 35584 more.
  tiny.b.graph.nodes.at(static_cast<size_t>(tiny.q())).flop += 712;
  const Completeness result = judge(test::one_call(tiny.b.graph));
  expect_problem(result, "the adapter counts 1.0200 of the FLOPs");
}

/// Attention of the tiny model without flash attention: KQ, softmax, KQV over a copy of the values, and a
/// rotation of the query that a quantised cache needs.
WorkloadGraph without_flash_attention() {
  TinyGraph tiny;
  GraphBuilder& b = tiny.b;
  auto& nodes = b.graph.nodes;
  const auto flash =
      std::find_if(nodes.begin(), nodes.end(), [](const Node& n) { return n.op == "FLASH_ATTN_EXT"; });
  flash->op = "SCALE";
  flash->flop = 0;
  const int values = b.tensor("cache_v_l0", TensorKind::kKv);
  const int keys = b.tensor("cache_k_l0", TensorKind::kKv);
  const int rotated = b.node("MUL_MAT", {b.tensor("rotation", TensorKind::kInput), tiny.q()});
  b.work(0, 1000);
  const int kq = b.node("MUL_MAT", {b.view(keys, {4, 256, 1, 1}), b.view(rotated, {4, kTokens, 2, 1})});
  b.work(0, 16384);  // 2 * 4 * 256 cells * 4 rows * 2 heads
  const int soft_max = b.node("SOFT_MAX", {kq});
  b.work(0, 8192);
  b.node("MUL_MAT", {b.node("CONT", {b.view(values)}), soft_max});
  b.work(0, 16384);
  b.single_units();
  return test::one_call(b.graph);
}

TEST(Completeness, CountsTheTwoProductsOfAttentionAndNotItsRotations) {
  const Completeness result = judge(without_flash_attention());
  EXPECT_TRUE(result.complete) << joined(result);
  EXPECT_EQ(result.counted_flop, 35584);
  EXPECT_EQ(result.expected_flop, 35584);
}

TEST(Completeness, FailsWhenANodeIsInNoCategory) {
  TinyGraph tiny;
  tiny.b.node("NOVEL_OP", {tiny.q()});
  tiny.b.unit({static_cast<int>(tiny.b.graph.nodes.size()) - 1});
  expect_problem(judge(test::one_call(tiny.b.graph)), "1 nodes of op NOVEL_OP are in no category");
}

TEST(Completeness, ForgivesHalfAPercentOfFlops) {
  TinyGraph tiny;
  tiny.b.graph.nodes.at(static_cast<size_t>(tiny.q())).flop += 178;
  EXPECT_TRUE(judge(test::one_call(tiny.b.graph)).complete);
}

TEST(Completeness, FailsWhenTheFilesShapeIsNotItsMetadatas) {
  ModelFacts facts = tiny_model();
  facts.tensors.at(9).ne = {17, 8, 1, 1};
  expect_problem(judge(test::one_call(TinyGraph().b.graph), facts),
                 "blk.0.ffn_down.weight is 17 x 8, the metadata says 16 x 8");
}

TEST(Completeness, DoesNotRunForAnArchitectureWithoutAClosedForm) {
  ModelFacts facts = tiny_model();
  facts.architecture = "phi9";
  const Completeness result = judge(test::one_call(TinyGraph().b.graph), facts);
  EXPECT_FALSE(result.ran);
  EXPECT_FALSE(result.complete);
  EXPECT_TRUE(result.problems.empty()) << joined(result);
  EXPECT_NE(result.reason.find("phi9"), std::string::npos);
}

}  // namespace
}  // namespace opledger::core
