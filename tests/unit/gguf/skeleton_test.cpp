#include "gguf/skeleton.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <set>

#include "dequantize.h"
#include "gguf/reader.h"
#include "gguf_bytes.h"

namespace opledger::gguf {
namespace {

using test::TempDir;
using ::testing::HasSubstr;

SkeletonSpec spec_of(Architecture architecture, int layers, const std::string& type = "q4_K") {
  SkeletonSpec spec;
  spec.architecture = architecture;
  spec.layers = layers;
  spec.type = type;
  return spec;
}

std::vector<TensorSpec> tensors_of(const SkeletonSpec& spec) {
  const Result<SkeletonPlan> plan = plan_skeleton(spec);
  EXPECT_TRUE(plan);
  return plan->layout.tensors;
}

uint64_t weight_bytes(const SkeletonSpec& spec) {
  uint64_t sum = 0;
  for (const TensorSpec& t : tensors_of(spec)) sum += bytes_of(t);
  return sum;
}

GgufFile written(const SkeletonSpec& spec, const std::filesystem::path& path) {
  const Status s = write_skeleton(spec, path);
  EXPECT_TRUE(s) << s.error().message;
  Result<GgufFile> r = read_gguf(path);
  EXPECT_TRUE(r) << r.error().message;
  return *std::move(r);
}

const TensorInfo& tensor(const GgufFile& file, const std::string& name) {
  const auto found = std::find_if(file.tensors.begin(), file.tensors.end(),
                                  [&](const TensorInfo& t) { return t.name == name; });
  EXPECT_NE(found, file.tensors.end()) << name;
  return *found;
}

/// Rows [first, first + count) of a tensor, dequantized by the test's own reader.
std::vector<double> rows(const GgufFile& file, const std::string& name, int64_t first, int64_t count) {
  const TensorInfo& t = tensor(file, name);
  const uint64_t row_bytes = t.bytes / static_cast<uint64_t>(t.ne[1] * t.ne[2] * t.ne[3]);
  std::vector<std::byte> bytes(row_bytes * static_cast<uint64_t>(count));
  std::ifstream in(file.path, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(t.offset + row_bytes * static_cast<uint64_t>(first)));
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return test::dequantized(t.type, bytes);
}

// Sums over the published widths, computed apart in Python: weights / block * block bytes, matrix by matrix.
TEST(SkeletonPlan, HasTheBytesOfTheModelsWidths) {
  EXPECT_EQ(weight_bytes(spec_of(Architecture::kQwen3Moe, 4)), 814743552U);
  EXPECT_EQ(weight_bytes(spec_of(Architecture::kQwen35Moe, 4)), 625467648U);
  EXPECT_EQ(weight_bytes(spec_of(Architecture::kLlama, 30, "q8_0")), 143025408U);
  EXPECT_EQ(weight_bytes(spec_of(Architecture::kLlama, 30, "Q4_0")), 89941248U);
}

// 576 is no multiple of 256: only ffn_down, whose rows have 1536 weights, can be q4_K.
TEST(SkeletonPlan, FallsBackToQ8WhereARowHasNoWholeBlocks) {
  EXPECT_EQ(weight_bytes(spec_of(Architecture::kLlama, 2)), 36728064U);
}

TEST(SkeletonPlan, RefusesWhatNoEngineCanRun) {
  const auto refused = [](SkeletonSpec spec) {
    const Result<SkeletonPlan> r = plan_skeleton(spec);
    EXPECT_FALSE(r);
    EXPECT_EQ(r.error().kind, Error::Kind::kBadInput);
    return r.error().message;
  };
  SkeletonSpec spec = spec_of(Architecture::kQwen3Moe, 0);
  EXPECT_THAT(refused(spec), HasSubstr("--layers 0: give a number from 1 to 512"));
  EXPECT_THAT(refused(spec_of(Architecture::kQwen35Moe, 3)), HasSubstr("from 4 to 512"));
  EXPECT_THAT(refused(spec_of(Architecture::kQwen3Moe, 513)), HasSubstr("--layers 513"));
  EXPECT_THAT(refused(spec_of(Architecture::kQwen3Moe, 1, "q5_0")), HasSubstr("--type q5_0: give Q4_0"));
  EXPECT_THAT(refused(spec_of(Architecture::kQwen3Moe, 1, "")), HasSubstr("--type"));
  spec = spec_of(Architecture::kQwen3Moe, 1);
  spec.experts = 7;
  EXPECT_THAT(refused(spec), HasSubstr("--experts 7: give a number from 8 to 512"));
  spec.experts = 8;
  spec.routing.zipf_exponent = 1.0;
  EXPECT_THAT(refused(spec), HasSubstr("--experts 8: give a number from 16 to 512"));
  spec = spec_of(Architecture::kLlama, 1);
  spec.routing.zipf_exponent = 1.0;
  EXPECT_THAT(refused(spec), HasSubstr("--routing: a llama skeleton"));
  spec = spec_of(Architecture::kLlama, 1);
  spec.experts = 64;
  EXPECT_THAT(refused(spec), HasSubstr("--experts: a llama skeleton"));
  spec = spec_of(Architecture::kLlama, 1);
  spec.vocab_tokens = 10;
  EXPECT_THAT(refused(spec), HasSubstr("--vocab 10"));
}

TEST(SkeletonPlan, PutsFullAttentionInEveryFourthHybridLayer) {
  std::set<std::string> names;
  for (const TensorSpec& t : tensors_of(spec_of(Architecture::kQwen35Moe, 8))) names.insert(t.name);
  for (const int layer : {3, 7}) {
    EXPECT_TRUE(names.contains("blk." + std::to_string(layer) + ".attn_k.weight"));
    EXPECT_FALSE(names.contains("blk." + std::to_string(layer) + ".ssm_out.weight"));
  }
  for (const int layer : {0, 1, 2, 4, 5, 6}) {
    EXPECT_TRUE(names.contains("blk." + std::to_string(layer) + ".ssm_a"));
    EXPECT_FALSE(names.contains("blk." + std::to_string(layer) + ".attn_q.weight"));
  }
}

// Token embedding and output norm, then nine tensors a layer; the embedding is the output matrix too.
TEST(Skeleton, OfLlamaIsReadBackWhole) {
  const TempDir dir;
  SkeletonSpec spec = spec_of(Architecture::kLlama, 2, "q4_0");
  spec.vocab_tokens = 256;
  const GgufFile file = written(spec, dir.file("m.gguf"));
  EXPECT_EQ(file.text("general.architecture"), "llama");
  EXPECT_EQ(file.integer("llama.block_count"), 2);
  EXPECT_EQ(file.integer("llama.vocab_size"), 256);
  EXPECT_EQ(file.integer("llama.attention.head_count_kv"), 3);
  EXPECT_EQ(file.tensors.size(), 2U + 2 * 9);
  EXPECT_EQ(tensor(file, "blk.1.ffn_down.weight").ne, (std::array<int64_t, 4>{1536, 576, 1, 1}));
  EXPECT_EQ(tensor(file, "blk.1.ffn_down.weight").type, "q4_0");
  EXPECT_EQ(tensor(file, "token_embd.weight").type, "q8_0");
  EXPECT_EQ(std::filesystem::file_size(dir.file("m.gguf")), file_bytes(plan_skeleton(spec)->layout));
}

TEST(Skeleton, IsTheSameForTheSameSeedAndAnotherForAnother) {
  const TempDir dir;
  SkeletonSpec spec = spec_of(Architecture::kLlama, 1, "q8_0");
  spec.vocab_tokens = 256;
  const GgufFile a = written(spec, dir.file("a.gguf"));
  const GgufFile b = written(spec, dir.file("b.gguf"));
  spec.seed = 2;
  const GgufFile c = written(spec, dir.file("c.gguf"));
  spec.seed = 1;
  spec.layers = 2;
  const GgufFile d = written(spec, dir.file("d.gguf"));
  const auto first_row = [](const GgufFile& f) { return rows(f, "blk.0.attn_q.weight", 0, 1); };
  EXPECT_EQ(first_row(a), first_row(b));
  EXPECT_NE(first_row(a), first_row(c));
  EXPECT_EQ(first_row(a), first_row(d)) << "a layer's weights do not depend on how many follow";
  EXPECT_NE(rows(d, "blk.0.attn_q.weight", 0, 1), rows(d, "blk.1.attn_q.weight", 0, 1));
}

class SmallMoe : public ::testing::Test {
 protected:
  SmallMoe() {
    spec_ = spec_of(Architecture::kQwen3Moe, 1);
    spec_.experts = 16;
    spec_.vocab_tokens = 2048;
  }
  TempDir dir_;
  SkeletonSpec spec_;
};

// Deviation 1 / sqrt(2048) = 0.0221, as for a matrix that keeps the size of what it is applied to.
TEST_F(SmallMoe, HasExpertsOfTheRightSizeThatDiffer) {
  const GgufFile file = written(spec_, dir_.file("m.gguf"));
  EXPECT_EQ(file.tensors.size(), 3U + 12);
  const std::string name = "blk.0.ffn_up_exps.weight";
  EXPECT_EQ(tensor(file, name).ne, (std::array<int64_t, 4>{2048, 768, 16, 1}));
  // Row 509 repeats row 0 in another order of its pieces; expert 1 begins with row 768.
  const std::vector<double> first = rows(file, name, 0, 1);
  std::vector<double> repeated = rows(file, name, 509, 1);
  EXPECT_NE(first, repeated);
  std::vector<double> sorted = first;
  std::sort(sorted.begin(), sorted.end());
  std::sort(repeated.begin(), repeated.end());
  EXPECT_EQ(sorted, repeated);
  const std::vector<double> expert = rows(file, name, 768, 50);
  const double square = std::inner_product(expert.begin(), expert.end(), expert.begin(), 0.0);
  EXPECT_NEAR(std::sqrt(square / static_cast<double>(expert.size())), 0.0221, 0.0005);
}

/// How often each expert is among the 8 best for the file's own embeddings: the router's arithmetic by hand,
/// in the first layer, whose attention part is left out.
std::vector<double> measured_popularity(const GgufFile& file, int64_t experts) {
  const std::vector<double> router = rows(file, "blk.0.ffn_gate_inp.weight", 0, experts);
  const int64_t tokens = tensor(file, "token_embd.weight").ne[1];
  std::vector<double> share(static_cast<size_t>(experts));
  for (int64_t t = 0; t < tokens; ++t) {
    const std::vector<double> x = rows(file, "token_embd.weight", t, 1);
    std::vector<std::pair<double, size_t>> score;
    for (size_t e = 0; e < share.size(); ++e) {
      score.emplace_back(
          std::inner_product(x.begin(), x.end(), router.begin() + static_cast<long>(e * x.size()), 0.0), e);
    }
    std::sort(score.begin(), score.end(), std::greater<>());
    for (size_t k = 0; k < 8; ++k) share[score[k].second] += 1.0 / static_cast<double>(tokens);
  }
  std::sort(share.begin(), share.end(), std::greater<>());
  return share;
}

// min(0.98, c / r) with a sum of 8 over 16 experts, computed apart in Python. Tolerance: four standard errors
// of 2048 tokens (0.011 each), since the largest of 16 deviations counts.
TEST_F(SmallMoe, RoutesAfterZipfsLawWhenAsked) {
  spec_.routing.zipf_exponent = 1.0;
  const std::vector<double> got = measured_popularity(written(spec_, dir_.file("m.gguf")), 16);
  const std::vector<double> wanted = zipf_inclusion(16, 8, 1.0);
  for (size_t e = 0; e < wanted.size(); ++e) EXPECT_NEAR(got[e], wanted[e], 0.045) << "rank " << e + 1;
}

TEST_F(SmallMoe, RoutesUniformlyOtherwise) {
  const std::vector<double> got = measured_popularity(written(spec_, dir_.file("m.gguf")), 16);
  EXPECT_NEAR(got.front(), 0.5, 0.045);
  EXPECT_NEAR(got.back(), 0.5, 0.045);
}

TEST(SkeletonNames, AreReadAndWrittenAlike) {
  for (const char* name : {"qwen3moe", "qwen35moe", "llama"})
    EXPECT_EQ(architecture_name(*parse_architecture(name)), name);
  EXPECT_THAT(parse_architecture("gemma").error().message,
              HasSubstr("--arch gemma: give qwen3moe, qwen35moe or llama"));
}

}  // namespace
}  // namespace opledger::gguf
