// The check `complete`: does the reported graph hold all of the model's work, once? Compares it with the
// model file and with the closed form of its architecture. Judges shapes and counts, never times.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/graph/graph.h"
#include "core/model/model_facts.h"
#include "core/scopes/scopes.h"

namespace opledger::core {

/// What one pass was asked to do.
struct PassShape {
  int64_t tokens = 0;        ///< of a prefill, or of one decode cycle
  int64_t depth_tokens = 0;  ///< cached before the first of them
};

struct Completeness {
  bool ran = false;  ///< false: `reason` says why it could not be judged, and `complete` is false
  std::string reason;
  bool complete = false;
  std::vector<std::string> problems;  ///< one line each; empty when complete

  int64_t working_nodes = 0;
  int64_t units = 0;
  std::vector<std::string>
      unread_tensors;              ///< of the file, that no unit reads; each with its reason if known
  std::vector<std::string> notes;  ///< explained differences: tied, merged or unread weights
  int64_t file_weight_bytes = 0;
  int64_t read_weight_bytes = 0;         ///< of the file's tensors that some unit reads, each once
  std::optional<int64_t> expected_flop;  ///< products with weights and full attention, by the closed form
  std::optional<int64_t> counted_flop;   ///< the same nodes, as the engine's adapter counted them
  std::optional<double> flop_ratio;      ///< counted / expected
  int64_t output_rows = 0;               ///< rows of logits in one pass
  int attention_layers = 0;
  int linear_attention_layers = 0;
};

/// FLOPs must agree within this.
inline constexpr double kFlopToleranceRatio = 0.01;

/// Judges one workload of one engine.
Completeness check_complete(const WorkloadGraph& workload, const RuleSet& rules, const ModelFacts& facts,
                            const PassShape& shape);

}  // namespace opledger::core
