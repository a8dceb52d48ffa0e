// From nodes to rows: category rules (data, one file per engine family), rows by category, role, layer or op,
// and the merging of categories into scopes where a unit of either engine spans them.
// Decided from shapes and names, never from times.
#pragma once

#include <functional>
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

/// Gives the text of the rule file called `name` (without ".json"): a file may extend another.
using RuleFileReader = std::function<Result<std::string>(const std::string& name)>;

/// Parses a rule file; `read_file` is asked for the file that it extends. Errors name the file and the rule.
Result<std::shared_ptr<const RuleSet>> parse_rules(std::string_view json, std::string_view file_name,
                                                   const RuleFileReader& read_file);
/// For a file that extends nothing; one that does is refused.
Result<std::shared_ptr<const RuleSet>> parse_rules(std::string_view json, std::string_view file_name);

/// The same rules without those that give `category`: broken on purpose, for self-tests.
std::shared_ptr<const RuleSet> without_category(const RuleSet& rules, const std::string& category);

/// The category of every node of a graph ("view" for nodes that do no work, "unsorted" for ops without a
/// rule).
std::vector<std::string> categories_of(const RuleSet& rules, const Graph& graph);

/// What categories_of calls a node without a rule.
inline constexpr const char* kUnsorted = "unsorted";

/// The stage that each node belongs to, empty for none: a group that engines cut differently inside.
std::vector<std::string> stages_of(const RuleSet& rules, const Graph& graph);

/// One engine's graph of one workload, with the rules of its family.
struct ScopedInput {
  const WorkloadGraph* graph = nullptr;
  const RuleSet* rules = nullptr;
  std::string label = {};  ///< names the side in notes ("a", "llama"); its place in the list when empty
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

/// Above this many FLOPs per byte a unit is taken to be bound by its FLOPs, below by its bytes. A round
/// figure for a CPU core (some 50 to 100 GFLOP/s over some 10 GB/s); fixed, so that the same graphs always
/// scope alike.
inline constexpr double kRidgeFlopPerByte = 8.0;

/// A category that holds less than this share of what binds its unit is swallowed by the dominant one.
inline constexpr double kMinorShareRatio = 0.03;

/// Scopes over all inputs of a session (both engines, all workloads), sorted by name. Fails when a unit holds
/// only views: such a graph was cut wrongly.
Result<Scoping> scope_units(const std::vector<ScopedInput>& inputs, RowKind rows);

}  // namespace opledger::core
