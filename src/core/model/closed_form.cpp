// Closed forms of the architectures that the checks know. Every width comes from metadata, so a file whose
// tensors disagree with its metadata is noticed.
#include "core/model/closed_form.h"

#include <array>
#include <fmt/format.h>

namespace opledger::core {

namespace {

/// Looks up widths; remembers the first that is missing.
class Widths {
 public:
  explicit Widths(const ModelFacts& facts) : facts_(facts) {}

  int64_t need(std::string_view suffix) {
    const auto value = facts_.count(suffix);
    if (!value && missing_.empty()) missing_ = fmt::format("{}.{}", facts_.architecture, suffix);
    return value.value_or(0);
  }
  int64_t or_else(std::string_view suffix, int64_t fallback) const {
    return facts_.count(suffix).value_or(fallback);
  }
  [[nodiscard]] const std::string& missing() const { return missing_; }

 private:
  const ModelFacts& facts_;
  std::string missing_;
};

void add_dense_ffn(LayerForm& layer, int64_t embedding, int64_t width, const std::string& suffix = "") {
  layer.projections.push_back({"ffn_gate" + suffix, embedding, width});
  layer.projections.push_back({"ffn_up" + suffix, embedding, width});
  layer.projections.push_back({"ffn_down" + suffix, width, embedding});
}

void add_experts(LayerForm& layer, Widths& widths, int64_t embedding, int64_t width) {
  const int64_t used = widths.need("expert_used_count");
  layer.projections.push_back({"ffn_gate_inp", embedding, widths.need("expert_count")});
  layer.projections.push_back({"ffn_gate_exps", embedding, width, used});
  layer.projections.push_back({"ffn_up_exps", embedding, width, used});
  layer.projections.push_back({"ffn_down_exps", width, embedding, used});
}

void add_attention(LayerForm& layer, Widths& widths, const ModelForm& form, int64_t query_parts) {
  const int64_t embedding = widths.need("embedding_length");
  const int64_t kv_heads = widths.or_else("attention.head_count_kv", form.query_heads);
  layer.projections.push_back({"attn_q", embedding, query_parts * form.query_heads * form.key_length});
  layer.projections.push_back({"attn_k", embedding, kv_heads * form.key_length});
  layer.projections.push_back({"attn_v", embedding, kv_heads * form.value_length});
  layer.projections.push_back({"attn_output", form.query_heads * form.value_length, embedding});
}

void add_linear_attention(LayerForm& layer, Widths& widths) {
  const int64_t embedding = widths.need("embedding_length");
  const int64_t inner = widths.need("ssm.inner_size");
  const int64_t value_heads = widths.need("ssm.time_step_rank");
  const int64_t keys = widths.need("ssm.group_count") * widths.need("ssm.state_size");
  layer.mixer = Mixer::kLinearAttention;
  layer.projections.push_back({"attn_qkv", embedding, 2 * keys + inner});
  layer.projections.push_back({"attn_gate", embedding, inner});
  layer.projections.push_back({"ssm_beta", embedding, value_heads});
  layer.projections.push_back({"ssm_alpha", embedding, value_heads});
  layer.projections.push_back({"ssm_out", inner, embedding});
}

LayerForm plain_layer(Widths& widths, const ModelForm& form, bool has_experts,
                      std::string_view expert_width_key) {
  LayerForm layer;
  const int64_t embedding = widths.need("embedding_length");
  add_attention(layer, widths, form, 1);
  if (has_experts) {
    add_experts(layer, widths, embedding, widths.need(expert_width_key));
  } else {
    add_dense_ffn(layer, embedding, widths.need("feed_forward_length"));
  }
  return layer;
}

LayerForm hybrid_layer(Widths& widths, const ModelForm& form, bool is_full) {
  LayerForm layer;
  const int64_t embedding = widths.need("embedding_length");
  // The query projection of a full layer also gives the gate of its output, as wide as the query.
  is_full ? add_attention(layer, widths, form, 2) : add_linear_attention(layer, widths);
  add_experts(layer, widths, embedding, widths.need("expert_feed_forward_length"));
  add_dense_ffn(layer, embedding, widths.need("expert_shared_feed_forward_length"), "_shexp");
  layer.projections.push_back({"ffn_gate_inp_shexp", embedding, 1});
  return layer;
}

/// Vocabulary: metadata, or else the rows of the token embedding (the list of tokens is no scalar).
std::optional<int64_t> vocabulary(const ModelFacts& facts) {
  if (const auto size = facts.count("vocab_size")) return size;
  const ModelTensor* embedding = facts.tensor("token_embd.weight");
  if (embedding == nullptr) return std::nullopt;
  return embedding->ne[1];
}

constexpr std::array<std::string_view, 5> kKnown = {"llama", "qwen3", "gemma3", "qwen3moe", "qwen35moe"};

}  // namespace

Result<ModelForm> model_form(const ModelFacts& facts) {
  bool is_known = false;
  for (const auto& known : kKnown) is_known = is_known || facts.architecture == known;
  if (!is_known) {
    return Error::bad_input(fmt::format("no closed form for architecture \"{}\" (there is one for {})",
                                        facts.architecture, fmt::join(kKnown, ", ")));
  }
  Widths widths(facts);
  ModelForm form;
  const int64_t embedding = widths.need("embedding_length");
  form.query_heads = widths.need("attention.head_count");
  const int64_t even_split = form.query_heads > 0 ? embedding / form.query_heads : 0;
  form.key_length = widths.or_else("attention.key_length", even_split);
  form.value_length = widths.or_else("attention.value_length", even_split);
  const bool is_hybrid = facts.architecture == "qwen35moe";
  const bool has_experts = widths.or_else("expert_count", 0) > 0;
  // Layers that only predict further tokens are in the file but not in a pass.
  const int64_t layers = widths.need("block_count") - widths.or_else("nextn_predict_layers", 0);
  // Mixture files of the llama architecture give the experts' width under the dense key.
  const std::string_view expert_width_key =
      facts.architecture == "llama" ? "feed_forward_length" : "expert_feed_forward_length";
  const int64_t interval = widths.or_else("full_attention_interval", 4);
  if (is_hybrid) {
    form.linear_value_heads = widths.need("ssm.time_step_rank");
    form.linear_head_length =
        form.linear_value_heads > 0 ? widths.need("ssm.inner_size") / form.linear_value_heads : 0;
  }
  for (int64_t i = 0; i < layers; ++i) {
    form.layers.push_back(is_hybrid ? hybrid_layer(widths, form, interval > 0 && (i + 1) % interval == 0)
                                    : plain_layer(widths, form, has_experts, expert_width_key));
  }
  const auto tokens = vocabulary(facts);
  if (!tokens) return Error::bad_input("the model file has neither a vocabulary size nor token_embd.weight");
  form.output = {"output", embedding, *tokens};
  if (!widths.missing().empty()) {
    return Error::bad_input(fmt::format("the model file lacks the number \"{}\"", widths.missing()));
  }
  return form;
}

}  // namespace opledger::core
