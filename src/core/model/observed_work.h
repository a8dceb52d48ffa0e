// What a reported graph was seen to do in one pass: rows and FLOPs of every product with a weight, by layer
// and role, and the attention of every layer. Only nodes of units count: what no unit holds is not measured.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/graph.h"
#include "core/model/closed_form.h"
#include "core/scopes/scopes.h"

namespace opledger::core {

/// Full attention of one layer in one pass.
struct ObservedAttention {
  int64_t row_heads = 0;       ///< rows times heads
  int64_t row_head_cells = 0;  ///< rows times heads times cached cells that each was multiplied with
  int64_t most_cells = 0;      ///< in one call
};

struct ObservedWork {
  /// Rows that met the weight, by (layer, role); layer -1 for the output. A weight that the engine merged
  /// counts under the roles it was made of.
  std::map<std::pair<int, std::string>, int64_t> rows;
  std::map<int, ObservedAttention> attention;
  std::set<int> kv_layers;           ///< layers whose KV cells some unit writes
  std::set<int> state_layers;        ///< layers whose recurrent state some unit writes
  int64_t counted_flop = 0;          ///< of those products and of attention, as the adapter counted them
  std::vector<std::string> unknown;  ///< products with weights that the closed form lacks
};

/// The role under which the output projection is counted.
inline constexpr const char* kOutputRole = "output";

ObservedWork observe_work(const WorkloadGraph& workload, const RuleSet& rules, const ModelForm& form);

}  // namespace opledger::core
