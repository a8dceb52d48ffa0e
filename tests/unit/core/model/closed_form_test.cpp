// Closed forms against parameter counts worked out by hand from the models' published widths.
#include "core/model/closed_form.h"

#include <gtest/gtest.h>

namespace opledger::core {
namespace {

int64_t flop_of_layer(const LayerForm& layer) {
  int64_t flop = 0;
  for (const auto& projection : layer.projections) flop += projection.flop_per_row();
  return flop;
}

ModelFacts smollm2() {
  ModelFacts facts;
  facts.architecture = "llama";
  facts.metadata = {{"llama.block_count", 30.0},
                    {"llama.embedding_length", 576.0},
                    {"llama.feed_forward_length", 1536.0},
                    {"llama.attention.head_count", 9.0},
                    {"llama.attention.head_count_kv", 3.0},
                    {"llama.vocab_size", 49152.0}};
  return facts;
}

TEST(ClosedForm, GivesSmolLm2sProducts) {
  const auto form = model_form(smollm2());
  ASSERT_TRUE(form) << form.error().message;
  ASSERT_EQ(form->layers.size(), 30U);
  // By hand: q and output 576 x 576, k and v 576 x 192, three products of 576 x 1536; two FLOPs an element.
  // 2 * (2 * 331776 + 2 * 110592 + 3 * 884736) = 7077888.
  EXPECT_EQ(flop_of_layer(form->layers[0]), 7077888);
  // 2 * 576 * 49152.
  EXPECT_EQ(form->output.flop_per_row(), 56623104);
  // 9 heads of 64: 2 * 9 * (64 + 64) = 2304 for each cached token.
  EXPECT_EQ(form->attention_flop_per_row(512), 1179648);
}

TEST(ClosedForm, TakesHeadLengthsFromTheFileWhereItGivesThem) {
  ModelFacts facts = smollm2();
  facts.architecture = "gemma3";
  facts.metadata = {{"gemma3.block_count", 18.0},
                    {"gemma3.embedding_length", 640.0},
                    {"gemma3.feed_forward_length", 2048.0},
                    {"gemma3.attention.head_count", 4.0},
                    {"gemma3.attention.head_count_kv", 1.0},
                    {"gemma3.attention.key_length", 256.0},
                    {"gemma3.attention.value_length", 256.0},
                    {"gemma3.vocab_size", 262144.0}};
  const auto form = model_form(facts);
  ASSERT_TRUE(form) << form.error().message;
  // By hand: q and output 640 x 1024, k and v 640 x 256, three of 640 x 2048:
  // 2 * (2 * 655360 + 2 * 163840 + 3 * 1310720) = 11141120.
  EXPECT_EQ(flop_of_layer(form->layers[0]), 11141120);
}

TEST(ClosedForm, CountsUsedExpertsOnly) {
  ModelFacts facts;
  facts.architecture = "qwen3moe";
  facts.metadata = {{"qwen3moe.block_count", 4.0},
                    {"qwen3moe.embedding_length", 2048.0},
                    {"qwen3moe.feed_forward_length", 6144.0},
                    {"qwen3moe.expert_feed_forward_length", 768.0},
                    {"qwen3moe.expert_count", 64.0},
                    {"qwen3moe.expert_used_count", 8.0},
                    {"qwen3moe.attention.head_count", 32.0},
                    {"qwen3moe.attention.head_count_kv", 4.0},
                    {"qwen3moe.attention.key_length", 128.0},
                    {"qwen3moe.attention.value_length", 128.0},
                    {"qwen3moe.vocab_size", 1000.0}};
  const auto form = model_form(facts);
  ASSERT_TRUE(form) << form.error().message;
  // By hand: q, output 2048 x 4096; k, v 2048 x 512; router 2048 x 64; 8 experts of 3 x 2048 x 768:
  // 2 * (2 * 8388608 + 2 * 1048576 + 131072 + 8 * 3 * 1572864) = 113508352.
  EXPECT_EQ(flop_of_layer(form->layers[0]), 113508352);
}

ModelFacts qwen35moe() {
  ModelFacts facts;
  facts.architecture = "qwen35moe";
  const std::string p = "qwen35moe.";
  facts.metadata = {{p + "block_count", 4.0},
                    {p + "embedding_length", 2048.0},
                    {p + "attention.head_count", 16.0},
                    {p + "attention.head_count_kv", 2.0},
                    {p + "attention.key_length", 256.0},
                    {p + "attention.value_length", 256.0},
                    {p + "expert_count", 64.0},
                    {p + "expert_used_count", 8.0},
                    {p + "expert_feed_forward_length", 512.0},
                    {p + "expert_shared_feed_forward_length", 512.0},
                    {p + "ssm.conv_kernel", 4.0},
                    {p + "ssm.state_size", 128.0},
                    {p + "ssm.group_count", 16.0},
                    {p + "ssm.time_step_rank", 32.0},
                    {p + "ssm.inner_size", 4096.0},
                    {p + "vocab_size", 2000.0}};
  return facts;
}

TEST(ClosedForm, AlternatesLinearAndFullAttention) {
  const auto form = model_form(qwen35moe());
  ASSERT_TRUE(form) << form.error().message;
  ASSERT_EQ(form->layers.size(), 4U);
  EXPECT_EQ(form->layers[2].mixer, Mixer::kLinearAttention);
  EXPECT_EQ(form->layers[3].mixer, Mixer::kFullAttention);
  // By hand. Mixture of every layer: router 2048 x 64, 8 experts and one shared of 3 x 2048 x 512, gate 2048:
  // 131072 + 9 * 3145728 + 2048 = 28444672 elements. Linear: qkv 2048 x 8192, z 2048 x 4096, beta and alpha
  // 2048 x 32, out 4096 x 2048: 33685504. Full: q 2048 x 8192, k and v 2048 x 512, out 4096 x 2048: 27262976.
  EXPECT_EQ(flop_of_layer(form->layers[0]), 2 * (28444672 + 33685504));
  EXPECT_EQ(flop_of_layer(form->layers[3]), 2 * (28444672 + 27262976));
}

TEST(ClosedForm, LeavesOutLayersThatOnlyPredictFurtherTokens) {
  ModelFacts facts = qwen35moe();
  facts.metadata["qwen35moe.nextn_predict_layers"] = 1.0;
  EXPECT_EQ(model_form(facts)->layers.size(), 3U);
}

TEST(ClosedForm, NamesTheKeyThatIsMissing) {
  ModelFacts facts = smollm2();
  facts.metadata.erase("llama.feed_forward_length");
  const auto form = model_form(facts);
  ASSERT_FALSE(form);
  EXPECT_NE(form.error().message.find("\"llama.feed_forward_length\""), std::string::npos)
      << form.error().message;
}

TEST(ClosedForm, NamesAnArchitectureThatItDoesNotKnow) {
  ModelFacts facts = smollm2();
  facts.architecture = "mamba2";
  const auto form = model_form(facts);
  ASSERT_FALSE(form);
  EXPECT_NE(form.error().message.find("\"mamba2\""), std::string::npos) << form.error().message;
}

TEST(ModelFacts, TellNoCountWhereTheNumberIsNotWhole) {
  ModelFacts facts = smollm2();
  facts.metadata["llama.half"] = 0.5;
  facts.metadata["llama.text"] = std::string("30");
  EXPECT_EQ(facts.count("block_count"), 30);
  EXPECT_EQ(facts.count("half"), std::nullopt);
  EXPECT_EQ(facts.count("text"), std::nullopt);
  EXPECT_EQ(facts.count("absent"), std::nullopt);
}

}  // namespace
}  // namespace opledger::core
