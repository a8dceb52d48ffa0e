// The one model that fake engines run: a small llama-like transformer whose graph, and whose GGUF file, can
// be written down. Nothing of it is computed.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fake_script.h"

namespace opledger::fake {

inline constexpr int64_t kEmbedding = 32;
inline constexpr int64_t kFeedForward = 64;
inline constexpr int64_t kHeads = 4;

/// A unit as the fake engine times it.
struct FakeUnit {
  std::vector<int> nodes;
  std::string role;  ///< the weight's role, or empty
  std::string op;    ///< of its first node
  int layer = -1;
  int64_t weight_bytes = 0;
};

struct FakeGraph {
  nlohmann::json nodes = nlohmann::json::array();
  nlohmann::json tensors = nlohmann::json::array();
  std::vector<FakeUnit> units;
};

/// The graph of a call over `tokens` tokens, at most `cells` of KV; RMS_NORM and its MUL are one unit when
/// `is_fused`.
FakeGraph build_graph(const Script& script, int64_t tokens, int64_t cells, bool is_fused);

/// Writes a GGUF file with the metadata and the (f32, zero) weights of that model.
void write_model(const std::string& path, int layers, int64_t vocab_tokens, const std::string& architecture);

}  // namespace opledger::fake
