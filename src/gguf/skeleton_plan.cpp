// Which keys and tensors each architecture needs in both engines, with the widths of published models:
// Qwen3-30B-A3B, Qwen3.5-35B-A3B and SmolLM2-135M. The vocabulary of the large two is cut to 32000.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "gguf/quantize.h"
#include "gguf/random.h"
#include "gguf/skeleton.h"

namespace opledger::gguf {
namespace {

constexpr int kExpertsUsed = 8;
constexpr int kMinExperts = kExpertsUsed;
constexpr int kMaxExperts = 512;  // both engines' limit
constexpr int kMaxLayers = 512;   // both engines' limit
constexpr int kMinVocab = 256;
constexpr int kMaxVocab = 1 << 20;
constexpr int kDefaultExperts = 64;
constexpr int kFullAttentionInterval = 4;  // qwen35moe: every fourth layer

// Feed-forward parts write into the residual stream at full strength up to this many layers and weaker
// beyond, so that the stream of a deep skeleton is no larger than that of a shallow one.
constexpr double kLayersAtFullStrength = 4;

// With zipf routing every embedding carries this mean, in units of its deviation. The router finds a popular
// expert's bias along it; see docs/skeleton.md.
constexpr float kEmbeddingMean = 0.5F;

struct Names {
  Architecture architecture;
  std::string_view name;
};
constexpr std::array<Names, 3> kArchitectures{{{Architecture::kQwen3Moe, "qwen3moe"},
                                               {Architecture::kQwen35Moe, "qwen35moe"},
                                               {Architecture::kLlama, "llama"}}};

/// llama.cpp's number for "mostly this type", which engines print and nothing else.
uint32_t file_type_of(std::string_view type) {
  if (type == "f32") return 0;
  if (type == "f16") return 1;
  if (type == "q4_0") return 2;
  if (type == "q8_0") return 7;
  if (type == "q4_K") return 14;
  return 18;  // q6_K
}

class Planner {
 public:
  Planner(const SkeletonSpec& spec, const TensorType& type) : spec_(spec), type_(type) {
    plan_.seed = spec.seed;
  }

  Result<SkeletonPlan> plan();

 private:
  void plan_qwen3moe();
  void plan_qwen35moe();
  void plan_llama();
  void add_common(std::string_view description, int vocab_tokens);
  void add_experts(int layer, int64_t width, int64_t expert_width);
  void add_full_attention(int layer);
  void add_linear_attention(int layer);

  void key(const std::string& name, Value value) {
    plan_.layout.metadata.emplace_back(fmt::format("{}.{}", architecture_name(spec_.architecture), name),
                                       std::move(value));
  }
  void count(const std::string& name, int64_t value) { key(name, static_cast<uint32_t>(value)); }
  void add(std::string name, const TensorType& type, std::vector<int64_t> ne, Fill fill) {
    plan_.layout.tensors.push_back({std::move(name), &type, std::move(ne)});
    plan_.fills.push_back(std::move(fill));
  }
  /// A large matrix: the chosen type, or q8_0 where a row is no whole number of its blocks.
  void matrix(std::string name, std::vector<int64_t> ne, Fill fill) {
    const TensorType& type = ne[0] % type_.block_weights == 0 ? type_ : *find_type("q8_0");
    add(std::move(name), type, std::move(ne), std::move(fill));
  }
  void vector(std::string name, std::vector<int64_t> ne, Fill fill) {
    add(std::move(name), *find_type("f32"), std::move(ne), std::move(fill));
  }
  /// What turns the final state into logits. Quantizers keep it finer than four bits; so do we.
  [[nodiscard]] const TensorType& head_type(int64_t width) const {
    const TensorType& wanted = type_.name == "q4_0" || type_.name == "q4_K" ? *find_type("q6_K") : type_;
    return width % wanted.block_weights == 0 ? wanted : *find_type("q8_0");
  }
  [[nodiscard]] Fill router(int layer, int64_t width) const;

  static Fill ones() { return {}; }
  static Fill gaussian(double scale) {
    return {Fill::Kind::kGaussian, static_cast<float>(scale), 0, 0, 0, {}};
  }
  static Fill centred(double scale) { return {Fill::Kind::kCentred, static_cast<float>(scale), 0, 0, 0, {}}; }
  static Fill uniform(float low, float high) { return {Fill::Kind::kUniform, 0, low, high, 0, {}}; }
  [[nodiscard]] Fill embedding(double scale) const {
    return {
        Fill::Kind::kEmbedding, static_cast<float>(scale), 0, 0, biases_.empty() ? 0 : kEmbeddingMean, {}};
  }
  /// Deviation of a matrix that keeps the size of what it is applied to.
  static double keeping(int64_t width) { return 1 / std::sqrt(static_cast<double>(width)); }
  /// What reads the residual stream.
  static Fill reading(int64_t width) { return centred(keeping(width)); }
  /// What ends a feed-forward part, where the stream's deviation is `stream`.
  [[nodiscard]] Fill feeding(int64_t width, double stream = 1) const {
    return gaussian(stream * keeping(width) * std::min(1.0, std::sqrt(kLayersAtFullStrength / spec_.layers)));
  }
  /// What ends an attention part. Attention averages over tokens, and what they have in common
  /// it adds to all of them once more: at full strength that part doubles with every layer, tokens become
  /// alike and choose the same experts. At this strength it grows by e^0.5 over all layers.
  [[nodiscard]] Fill attending(int64_t width, double stream = 1) const {
    return gaussian(stream * keeping(width) / std::sqrt(2.0 * spec_.layers));
  }
  static std::string block(int layer, std::string_view name) { return fmt::format("blk.{}.{}", layer, name); }
  [[nodiscard]] int experts() const { return spec_.experts.value_or(kDefaultExperts); }

  const SkeletonSpec& spec_;
  const TensorType& type_;
  std::vector<double> biases_;  // by rank; empty for uniform routing
  SkeletonPlan plan_;
};

void Planner::add_common(std::string_view description, int vocab_tokens) {
  auto& metadata = plan_.layout.metadata;
  metadata.emplace_back("general.architecture", std::string(architecture_name(spec_.architecture)));
  metadata.emplace_back("general.name", fmt::format("{} skeleton, random weights", description));
  metadata.emplace_back("general.file_type", file_type_of(type_.name));
  metadata.emplace_back("opledger.skeleton.seed", spec_.seed);
  metadata.emplace_back("opledger.skeleton.routing", routing_text(spec_.routing));
  count("block_count", spec_.layers);
  count("vocab_size", spec_.vocab_tokens.value_or(vocab_tokens));
  // Engines then take token ids and nothing else.
  metadata.emplace_back("tokenizer.ggml.model", std::string("no_vocab"));
}

Fill Planner::router(int layer, int64_t width) const {
  Fill fill = gaussian(keeping(width));
  fill.kind = Fill::Kind::kRouter;
  if (biases_.empty()) return fill;
  // Which expert is popular differs from layer to layer.
  fill.mean = kEmbeddingMean;
  fill.biases.assign(biases_.begin(), biases_.end());
  detail::Random random(spec_.seed, block(layer, "ranks"));
  for (size_t i = fill.biases.size() - 1; i > 0; --i)
    std::swap(fill.biases[i], fill.biases[random.below(i + 1)]);
  return fill;
}

void Planner::add_experts(int layer, int64_t width, int64_t expert_width) {
  const int64_t n = experts();
  vector(block(layer, "ffn_gate_inp.weight"), {width, n}, router(layer, width));
  matrix(block(layer, "ffn_gate_exps.weight"), {width, expert_width, n}, reading(width));
  matrix(block(layer, "ffn_up_exps.weight"), {width, expert_width, n}, reading(width));
  matrix(block(layer, "ffn_down_exps.weight"), {expert_width, width, n}, feeding(expert_width));
}

void Planner::plan_qwen3moe() {
  constexpr int64_t kWidth = 2048, kHeads = 32, kKvHeads = 4, kHead = 128, kExpertWidth = 768,
                    kDenseWidth = 6144;
  add_common("Qwen3-30B-A3B", 32000);
  count("context_length", 40960);
  count("embedding_length", kWidth);
  count("feed_forward_length", kDenseWidth);
  count("attention.head_count", kHeads);
  count("attention.head_count_kv", kKvHeads);
  count("attention.key_length", kHead);
  count("attention.value_length", kHead);
  key("attention.layer_norm_rms_epsilon", 1e-6F);
  key("rope.freq_base", 1e6F);
  count("expert_count", experts());
  count("expert_used_count", kExpertsUsed);
  count("expert_feed_forward_length", kExpertWidth);
  const int64_t vocab = spec_.vocab_tokens.value_or(32000);
  matrix("token_embd.weight", {kWidth, vocab}, embedding(1));
  vector("output_norm.weight", {kWidth}, ones());
  add("output.weight", head_type(kWidth), {kWidth, vocab}, reading(kWidth));
  for (int l = 0; l < spec_.layers; ++l) {
    vector(block(l, "attn_norm.weight"), {kWidth}, ones());
    matrix(block(l, "attn_q.weight"), {kWidth, kHeads * kHead}, reading(kWidth));
    matrix(block(l, "attn_k.weight"), {kWidth, kKvHeads * kHead}, reading(kWidth));
    matrix(block(l, "attn_v.weight"), {kWidth, kKvHeads * kHead}, reading(kWidth));
    matrix(block(l, "attn_output.weight"), {kHeads * kHead, kWidth}, attending(kHeads * kHead));
    vector(block(l, "attn_q_norm.weight"), {kHead}, ones());
    vector(block(l, "attn_k_norm.weight"), {kHead}, ones());
    vector(block(l, "ffn_norm.weight"), {kWidth}, ones());
    add_experts(l, kWidth, kExpertWidth);
  }
}

// Three layers of gated delta net, then one of full attention.
constexpr int64_t kHybridWidth = 2048, kHybridHeads = 16, kHybridKvHeads = 2, kHybridHead = 256,
                  kHybridExpert = 512;
constexpr int64_t kKeyHeads = 16, kValueHeads = 32, kState = 128, kConvolution = 4;
constexpr int64_t kValueWidth = kValueHeads * kState;
constexpr int64_t kMixedWidth = 2 * kKeyHeads * kState + kValueWidth;

void Planner::add_full_attention(int layer) {
  // Each head's query is followed by its gate.
  matrix(block(layer, "attn_q.weight"), {kHybridWidth, 2 * kHybridHeads * kHybridHead},
         reading(kHybridWidth));
  matrix(block(layer, "attn_k.weight"), {kHybridWidth, kHybridKvHeads * kHybridHead}, reading(kHybridWidth));
  matrix(block(layer, "attn_v.weight"), {kHybridWidth, kHybridKvHeads * kHybridHead}, reading(kHybridWidth));
  matrix(block(layer, "attn_output.weight"), {kHybridHeads * kHybridHead, kHybridWidth},
         attending(kHybridHeads * kHybridHead));
  vector(block(layer, "attn_q_norm.weight"), {kHybridHead}, ones());
  vector(block(layer, "attn_k_norm.weight"), {kHybridHead}, ones());
}

void Planner::add_linear_attention(int layer) {
  matrix(block(layer, "attn_qkv.weight"), {kHybridWidth, kMixedWidth}, reading(kHybridWidth));
  matrix(block(layer, "attn_gate.weight"), {kHybridWidth, kValueWidth}, reading(kHybridWidth));
  vector(block(layer, "ssm_conv1d.weight"), {kConvolution, kMixedWidth}, gaussian(keeping(kConvolution)));
  vector(block(layer, "ssm_dt.bias"), {kValueHeads}, uniform(-4, -1));
  vector(block(layer, "ssm_a"), {kValueHeads}, uniform(-4, -0.5F));  // a decay rate: negative
  matrix(block(layer, "ssm_beta.weight"), {kHybridWidth, kValueHeads}, reading(kHybridWidth));
  matrix(block(layer, "ssm_alpha.weight"), {kHybridWidth, kValueHeads}, reading(kHybridWidth));
  vector(block(layer, "ssm_norm.weight"), {kState}, ones());
  matrix(block(layer, "ssm_out.weight"), {kValueWidth, kHybridWidth}, attending(kValueWidth));
}

void Planner::plan_qwen35moe() {
  add_common("Qwen3.5-35B-A3B", 32000);
  count("context_length", 262144);
  count("embedding_length", kHybridWidth);
  count("attention.head_count", kHybridHeads);
  count("attention.head_count_kv", kHybridKvHeads);
  count("attention.key_length", kHybridHead);
  count("attention.value_length", kHybridHead);
  key("attention.layer_norm_rms_epsilon", 1e-6F);
  key("rope.freq_base", 1e7F);
  count("rope.dimension_count", 64);
  key("rope.dimension_sections", std::vector<int32_t>{11, 11, 10, 0});
  count("expert_count", experts());
  count("expert_used_count", kExpertsUsed);
  count("expert_feed_forward_length", kHybridExpert);
  count("expert_shared_feed_forward_length", kHybridExpert);
  count("ssm.conv_kernel", kConvolution);
  count("ssm.state_size", kState);
  count("ssm.group_count", kKeyHeads);
  count("ssm.time_step_rank", kValueHeads);
  count("ssm.inner_size", kValueWidth);
  count("full_attention_interval", kFullAttentionInterval);
  const int64_t vocab = spec_.vocab_tokens.value_or(32000);
  matrix("token_embd.weight", {kHybridWidth, vocab}, embedding(1));
  vector("output_norm.weight", {kHybridWidth}, ones());
  add("output.weight", head_type(kHybridWidth), {kHybridWidth, vocab}, reading(kHybridWidth));
  for (int l = 0; l < spec_.layers; ++l) {
    vector(block(l, "attn_norm.weight"), {kHybridWidth}, ones());
    vector(block(l, "post_attention_norm.weight"), {kHybridWidth}, ones());
    if ((l + 1) % kFullAttentionInterval == 0) {
      add_full_attention(l);
    } else {
      add_linear_attention(l);
    }
    add_experts(l, kHybridWidth, kHybridExpert);
    vector(block(l, "ffn_gate_inp_shexp.weight"), {kHybridWidth}, reading(kHybridWidth));
    matrix(block(l, "ffn_gate_shexp.weight"), {kHybridWidth, kHybridExpert}, reading(kHybridWidth));
    matrix(block(l, "ffn_up_shexp.weight"), {kHybridWidth, kHybridExpert}, reading(kHybridWidth));
    matrix(block(l, "ffn_down_shexp.weight"), {kHybridExpert, kHybridWidth}, feeding(kHybridExpert));
  }
}

void Planner::plan_llama() {
  constexpr int64_t kWidth = 576, kHeads = 9, kKvHeads = 3, kHead = 64, kFeedForward = 1536;
  add_common("SmolLM2-135M", 49152);
  count("context_length", 8192);
  count("embedding_length", kWidth);
  count("feed_forward_length", kFeedForward);
  count("attention.head_count", kHeads);
  count("attention.head_count_kv", kKvHeads);
  key("attention.layer_norm_rms_epsilon", 1e-5F);
  key("rope.freq_base", 1e5F);
  count("rope.dimension_count", kHead);
  const int64_t vocab = spec_.vocab_tokens.value_or(49152);
  // The embedding is the output matrix too, so its scale is the one that gives logits of deviation 1; what
  // writes into the stream follows it.
  const double in = keeping(kWidth);
  add("token_embd.weight", head_type(kWidth), {kWidth, vocab}, embedding(in));
  vector("output_norm.weight", {kWidth}, ones());
  for (int l = 0; l < spec_.layers; ++l) {
    vector(block(l, "attn_norm.weight"), {kWidth}, ones());
    matrix(block(l, "attn_q.weight"), {kWidth, kHeads * kHead}, reading(kWidth));
    matrix(block(l, "attn_k.weight"), {kWidth, kKvHeads * kHead}, reading(kWidth));
    matrix(block(l, "attn_v.weight"), {kWidth, kKvHeads * kHead}, reading(kWidth));
    matrix(block(l, "attn_output.weight"), {kHeads * kHead, kWidth}, attending(kHeads * kHead, in));
    vector(block(l, "ffn_norm.weight"), {kWidth}, ones());
    matrix(block(l, "ffn_gate.weight"), {kWidth, kFeedForward}, reading(kWidth));
    matrix(block(l, "ffn_up.weight"), {kWidth, kFeedForward}, reading(kWidth));
    matrix(block(l, "ffn_down.weight"), {kFeedForward, kWidth}, feeding(kFeedForward, in));
  }
}

Result<SkeletonPlan> Planner::plan() {
  if (spec_.routing.zipf_exponent) {
    const std::vector<double> inclusion =
        zipf_inclusion(experts(), kExpertsUsed, *spec_.routing.zipf_exponent);
    biases_ = selection_biases(inclusion);
  }
  switch (spec_.architecture) {
    case Architecture::kQwen3Moe:
      plan_qwen3moe();
      break;
    case Architecture::kQwen35Moe:
      plan_qwen35moe();
      break;
    case Architecture::kLlama:
      plan_llama();
      break;
  }
  return std::move(plan_);
}

Status check_range(std::string_view flag, int value, int low, int high) {
  if (value >= low && value <= high) return {};
  return Error::bad_input(fmt::format("{} {}: give a number from {} to {}", flag, value, low, high));
}

Status check_spec(const SkeletonSpec& spec) {
  // Without a layer of full attention both engines abort in their first pass.
  const int least_layers = spec.architecture == Architecture::kQwen35Moe ? kFullAttentionInterval : 1;
  if (Status s = check_range("--layers", spec.layers, least_layers, kMaxLayers); !s) return s;
  if (spec.vocab_tokens) {
    if (Status s = check_range("--vocab", *spec.vocab_tokens, kMinVocab, kMaxVocab); !s) return s;
  }
  const bool is_dense = spec.architecture == Architecture::kLlama;
  if (is_dense && spec.experts) {
    return Error::bad_input(
        "--experts: a llama skeleton has none; drop the flag or choose --arch qwen3moe or qwen35moe");
  }
  if (is_dense && spec.routing.zipf_exponent) {
    return Error::bad_input(
        "--routing: a llama skeleton routes nothing; drop the flag or choose --arch qwen3moe or qwen35moe");
  }
  if (!spec.experts) return {};
  // With as many experts as are used nothing is chosen, so no popularity can be.
  const int least_experts = spec.routing.zipf_exponent ? 2 * kExpertsUsed : kMinExperts;
  return check_range("--experts", *spec.experts, least_experts, kMaxExperts);
}

}  // namespace

Result<Architecture> parse_architecture(std::string_view text) {
  for (const Names& entry : kArchitectures) {
    if (entry.name == text) return entry.architecture;
  }
  return Error::bad_input(fmt::format("--arch {}: give qwen3moe, qwen35moe or llama", text));
}

std::string_view architecture_name(Architecture architecture) {
  const auto* const found =
      std::find_if(kArchitectures.begin(), kArchitectures.end(),
                   [&](const Names& entry) { return entry.architecture == architecture; });
  return found->name;
}

Result<SkeletonPlan> plan_skeleton(const SkeletonSpec& spec) {
  if (Status s = check_spec(spec); !s) return s.error();
  const TensorType* const type = find_type(spec.type);
  if (type == nullptr || !can_quantize(*type)) {
    return Error::bad_input(fmt::format("--type {}: give Q4_0, Q4_K, Q6_K, Q8_0, F16 or F32", spec.type));
  }
  return Planner(spec, *type).plan();
}

}  // namespace opledger::gguf
