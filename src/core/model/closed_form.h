// What one pass of a model must compute, from its metadata alone: which weights each layer multiplies with,
// of what shape, and how the layers attend. Knows llama, qwen3, gemma3, qwen3moe and qwen35moe; says so for
// others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/model/model_facts.h"

namespace opledger::core {

/// One product with a weight: `columns` in, `outputs` out, for each row. Expert weights: per row and used
/// expert.
struct Projection {
  std::string role;
  int64_t columns = 0;
  int64_t outputs = 0;
  int64_t experts_used = 0;  ///< 0: not an expert weight; else how many experts a row meets

  /// FLOPs of one row: a multiplication and an addition for each weight element that it meets.
  [[nodiscard]] int64_t flop_per_row() const {
    return 2 * columns * outputs * (experts_used > 0 ? experts_used : 1);
  }
};

enum class Mixer { kFullAttention, kLinearAttention };

struct LayerForm {
  Mixer mixer = Mixer::kFullAttention;
  std::vector<Projection> projections;
};

struct ModelForm {
  std::vector<LayerForm> layers;
  Projection output;        ///< of the vocabulary
  int64_t query_heads = 0;  ///< of a full-attention layer
  int64_t key_length = 0;   ///< elements of a head
  int64_t value_length = 0;
  int64_t linear_value_heads = 0;  ///< of a linear-attention layer; 0 without one
  int64_t linear_head_length = 0;

  /// FLOPs of full attention for one row over `cells` cached tokens: KQ and KQV, softmax not counted.
  [[nodiscard]] int64_t attention_flop_per_row(int64_t cells) const {
    return 2 * query_heads * (key_length + value_length) * cells;
  }
};

/// The form of a model. An architecture without one, or a missing key, is an error that names it.
Result<ModelForm> model_form(const ModelFacts& facts);

}  // namespace opledger::core
