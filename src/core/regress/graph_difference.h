// What two engines execute differently for one workload: operations that only one of them executes, and those
// whose shapes, types, place or unit differ. From their graphs alone, never from times.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/scopes/scopes.h"

namespace opledger::core {

enum class GraphChangeKind { kAdded, kRemoved, kChanged };

/// "added", "removed" or "changed".
const char* graph_change_name(GraphChangeKind kind);

/// Executions that are alike: same operation, category and weight role, whatever their layer.
struct GraphChange {
  GraphChangeKind kind = GraphChangeKind::kChanged;
  std::string op;        ///< "MUL_MAT"
  std::string category;  ///< by the rules of its own engine's family
  std::string role;      ///< of the weights that it reads, joined by ","; empty: it reads none
  int64_t per_pass = 0;  ///< executions; a decode pass is a whole cycle
  /// "q4_0 [576,1536], f32 [576,512] -> f32 [1536,512]"; of what changed only the parts that differ. `before`
  /// (base) is empty where added, `after` (head) where removed.
  std::optional<std::string> before, after;
};

/// What `head` executes differently from `base`, sorted by operation, category and role; empty: the same
/// work. The order in which nodes are executed is no difference, and neither are their names. Units are
/// compared only where both sides were probed: without a probe every node is a unit of its own.
std::vector<GraphChange> graph_changes(const ScopedInput& base, const ScopedInput& head);

}  // namespace opledger::core
