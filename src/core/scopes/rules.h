// A rule file in memory. Internal to core/scopes: others use the opaque handle of scopes.h.
// The file's form and the meaning of every key: docs/rules.md.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/scopes/scopes.h"

namespace opledger::core {

/// Conditions on one node. All that are given must hold; within a list one entry must. Text lists are exact
/// unless an entry ends in "*".
struct NodePattern {
  std::vector<std::string> ops;
  std::vector<std::string> roles;       ///< of a weight that the node reads
  std::vector<std::string> names;       ///< of the node itself
  std::vector<TensorKind> reads;        ///< kind of a tensor that the node reads, views followed
  std::vector<std::string> from;        ///< category of some computed source
  std::vector<std::string> from_all;    ///< category of every computed source, of which there is one at least
  std::vector<std::string> from_roles;  ///< role of a weight that some computed source reads
  std::optional<Lasting> writes;
  std::string region;
};

struct Rule {
  NodePattern pattern;
  std::string category;
  std::string stage;
};

/// Consecutive nodes from the one that matches `from` to the next one that matches `to`, both included.
struct Region {
  NodePattern from;
  NodePattern to;
};

struct RuleSet {
  std::string family;
  std::vector<Rule> rules;  ///< first match wins
  std::map<std::string, Region> regions;
  std::map<std::string, std::string> stages;                  ///< stage -> why it is one
  std::map<std::string, std::vector<std::string>> same_work;  ///< op -> the ops that do its work elsewhere
  std::map<std::string, std::vector<std::string>>
      weight_parts;                                   ///< role -> roles that a file may hold instead
  std::map<std::string, std::string> category_roles;  ///< category -> the one role of its nodes
};

/// Category and stage of every node, from one pass over the graph.
struct Labels {
  std::vector<std::string> categories;
  std::vector<std::string> stages;
};
Labels label_nodes(const RuleSet& rules, const Graph& graph);

}  // namespace opledger::core
