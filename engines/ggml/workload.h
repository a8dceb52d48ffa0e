// A workload as the engine executes it, and the arms prepared for it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engines/ggml/arm_graph.h"
#include "engines/ggml/graph_model.h"

namespace opledger::ggml {

/// Expert choices of one routed node: distinct experts, one entry per call of its graph.
struct RoutedNode {
  int graph = 0, node = 0, layer = -1;
  int64_t experts = 0, used = 0, tokens = 0;
  std::vector<int64_t> distinct;
};

struct Arm {
  std::string id;
  ArmKind kind = ArmKind::kBaseline;
  std::vector<std::unique_ptr<ArmGraph>> graphs;  ///< one per graph of the workload; empty: nothing inserted
};

struct Workload {
  std::string id;
  bool is_decode = false;
  std::vector<llama_token> prompt;  ///< decode: what comes before
  std::vector<llama_token> tokens;  ///< prefill: the prompt; decode: one cycle

  std::vector<int> calls;  ///< index into graphs, per graph call of a pass
  std::vector<std::unique_ptr<GraphModel>> graphs;
  std::vector<RoutedNode> routing;
  bool probe_ran = false;
  std::string probe_reason;

  std::map<std::string, Arm> arms;

  /// Decodes of one pass: a cycle's tokens come one at a time.
  [[nodiscard]] size_t steps() const { return is_decode ? tokens.size() : 1; }
  /// What a step decodes, and at which position.
  [[nodiscard]] std::span<const llama_token> tokens_of(size_t step) const;
  [[nodiscard]] int position_of(size_t step) const;
  [[nodiscard]] bool has_recurrent_state() const;
  /// Whether some node selects experts.
  [[nodiscard]] bool is_routed() const;
  [[nodiscard]] bool has_unit(int graph, int unit) const;
  [[nodiscard]] size_t unit_count() const;
  /// Place of a graph's first unit in the workload's unit order.
  [[nodiscard]] size_t first_unit_of(int graph) const;
  [[nodiscard]] bool has_planted() const;
  /// What planted work has done so far, in all arms.
  [[nodiscard]] SpinCount spun() const;
  /// Every distinct tensor of lasting memory (roots), KV first.
  [[nodiscard]] std::vector<Leaf> lasting_memory() const;
};

}  // namespace opledger::ggml
