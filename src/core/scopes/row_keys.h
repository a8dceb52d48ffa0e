// What each node counts under, for each kind of row: its category, the role of its weights, its layer, its
// op. A node of a stage counts under the stage, except in rows by layer: its inside is cut differently
// elsewhere.
#pragma once

#include <string>
#include <vector>

#include "core/scopes/rules.h"
#include "core/scopes/scopes.h"

namespace opledger::core {

/// Keys of every node of a graph. Views have none; a node that does the work of several keys has several.
struct NodeKeys {
  Labels labels;
  std::vector<std::vector<std::string>> keys;
};

/// Keys of one graph. A stage's key is its name, marked so that it cannot collide with a category.
NodeKeys row_keys(const RuleSet& rules, const Graph& graph, RowKind rows);

/// Mark in front of a stage's name in a key.
inline constexpr char kStageMark = '@';

}  // namespace opledger::core
