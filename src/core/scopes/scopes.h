// From nodes to rows: category rules (data, one file per engine family), rows by category, role, layer or op,
// and the merging of categories into scopes where a unit of either engine spans them.
// Decided from shapes and names, never from times.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/graph/graph.h"

namespace opledger::core {

enum class RowKind { kCategory, kRole, kLayer, kOp };

/// Parsed category rules of one engine family. Opaque: see docs/rules.md for the file's form.
struct RuleSet;
Result<std::shared_ptr<const RuleSet>> parse_rules(std::string_view json, std::string_view file_name);

/// The category of every node of a graph ("view" for nodes that do no work, "unsorted" for ops without a rule).
std::vector<std::string> categories_of(const RuleSet& rules, const Graph& graph);

/// One engine's graph of one workload, with the rules of its family.
struct ScopedInput {
  const WorkloadGraph* graph = nullptr;
  const RuleSet* rules = nullptr;
};

struct Scope {
  std::string name;                     ///< its categories (or roles, ...) joined by "+", or the stage's name
  std::vector<std::string> categories;  ///< sorted
  std::vector<std::string> notes;       ///< why it was merged, what a dominant category swallowed
};

struct Scoping {
  std::vector<Scope> scopes;
  /// [input][unit in unit order] -> index into scopes.
  std::vector<std::vector<int>> unit_scope;
};

/// Scopes over all inputs of a session (both engines, all workloads).
Result<Scoping> scope_units(const std::vector<ScopedInput>& inputs, RowKind rows);

}  // namespace opledger::core
