#include "engines/ggml/workload.h"

#include <algorithm>
#include <set>

namespace opledger::ggml {

std::span<const llama_token> Workload::tokens_of(size_t step) const {
  const auto all = std::span<const llama_token>(tokens);
  return is_decode ? all.subspan(step, 1) : all;
}

int Workload::position_of(size_t step) const {
  return static_cast<int>(prompt.size() + step);
}

bool Workload::has_recurrent_state() const {
  for (const auto& graph : graphs) {
    for (const Leaf& leaf : graph->leaves) {
      if (leaf.kind == LeafKind::kState) return true;
    }
  }
  return false;
}

bool Workload::is_routed() const {
  for (const auto& graph : graphs) {
    for (const NodeFacts& facts : graph->nodes) {
      if (facts.expert_ids >= 0) return true;
    }
  }
  return false;
}

bool Workload::has_unit(int graph, int unit) const {
  if (graph < 0 || graph >= static_cast<int>(graphs.size())) return false;
  return unit >= 0 && unit < static_cast<int>(graphs[static_cast<size_t>(graph)]->units.size());
}

size_t Workload::unit_count() const {
  return first_unit_of(static_cast<int>(graphs.size()));
}

size_t Workload::first_unit_of(int graph) const {
  size_t count = 0;
  for (int g = 0; g < graph; ++g) count += graphs[static_cast<size_t>(g)]->units.size();
  return count;
}

bool Workload::has_planted() const {
  return std::any_of(graphs.begin(), graphs.end(), [](const auto& graph) { return !graph->planted.empty(); });
}

SpinCount Workload::spun() const {
  SpinCount total;
  for (const auto& graph : graphs) {
    for (const auto& [unit, spin] : graph->planted) total += spin->count;
  }
  return total;
}

std::vector<Leaf> Workload::lasting_memory() const {
  std::set<const ggml_tensor*> seen;
  std::vector<Leaf> memory;
  for (LeafKind kind : {LeafKind::kKv, LeafKind::kState}) {
    for (const auto& graph : graphs) {
      for (const Leaf& leaf : graph->leaves) {
        const bool owns_memory = leaf.tensor->view_src == nullptr;
        if (leaf.kind == kind && owns_memory && seen.insert(leaf.tensor).second) memory.push_back(leaf);
      }
    }
  }
  return memory;
}

}  // namespace opledger::ggml
