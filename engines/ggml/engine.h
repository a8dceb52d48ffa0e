// The driven engine behind one small interface: load, decode, logits, and putting a sequence back to where it
// was. Knows llama.h and its variants; knows nothing of graphs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engines/ggml/tree.h"
#include "src/core/base/result.h"

namespace opledger::ggml {

struct LoadRequest {
  std::string model_path;
  int context_tokens = 0;
  int batch_tokens = 2048;
  int ubatch_tokens = 512;
  int threads = 1;
  std::map<std::string, std::string> flags;  ///< llama-bench's names, without the dash
};

/// Where a sequence stood.
struct Checkpoint {
  int positions = 0;
  std::vector<uint8_t> recurrent_state;  ///< empty: the model has none
};

/// A loaded model with one context of one sequence. Not thread-safe: one caller.
class Engine {
 public:
  static Result<std::unique_ptr<Engine>> load(const LoadRequest& request);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  [[nodiscard]] int vocab_tokens() const;
  [[nodiscard]] int context_tokens() const;
  [[nodiscard]] int layers() const;
  [[nodiscard]] std::string architecture() const;
  /// Every flag in force, including those left at the engine's default.
  [[nodiscard]] const std::map<std::string, std::string>& flags() const { return flags_; }
  /// Names of the tensors in the model file.
  [[nodiscard]] const std::set<std::string>& weight_names() const { return weight_names_; }
  [[nodiscard]] std::vector<llama_token> tokenize(const std::string& text) const;

  /// Forgets all positions. Lasting memory keeps its bytes where the engine allows it.
  void clear();
  /// Decodes tokens at `position` and waits. Logits for the last `output_rows` of them.
  Status decode(std::span<const llama_token> tokens, int position, int output_rows = 1);
  /// The logits row of output `row` of the last decode, vocab_tokens() floats, owned by the engine.
  [[nodiscard]] const float* logits(int row) const;
  /// The sequence as it is now (`positions` tokens).
  Result<Checkpoint> checkpoint(int positions, bool has_recurrent_state) const;
  /// Puts the sequence back: recurrent state first, then the removal of later positions, the order that
  /// leaves no stale cell on every tree.
  Status restore(const Checkpoint& checkpoint);

 private:
  Engine() = default;
  llama_model* model_ = nullptr;
  llama_context* context_ = nullptr;
  llama_batch batch_{};
  int batch_tokens_ = 0;
  int last_tokens_ = 0;
  int last_output_rows_ = 1;
  std::map<std::string, std::string> flags_;
  std::set<std::string> weight_names_;
};

/// Tensor names of a GGUF file, by the engine's own reader. Empty when it cannot be read.
std::set<std::string> tensor_names_of(const std::string& model_path);

}  // namespace opledger::ggml
