// Gives every node its category: the first rule that matches. Data flows forward, so a rule may ask what the
// sources turned out to be. Decided from shapes, names and data flow, never from times.
#include <algorithm>
#include <string_view>

#include "core/graph/sources.h"
#include "core/scopes/rules.h"

namespace opledger::core {

namespace {

constexpr std::string_view kView = "view";

bool matches_text(const std::string& pattern, std::string_view text) {
  if (!pattern.empty() && pattern.back() == '*') {
    return text.starts_with(std::string_view(pattern).substr(0, pattern.size() - 1));
  }
  return text == pattern;
}

bool matches_any(const std::vector<std::string>& patterns, std::string_view text) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches_text(pattern, text); });
}

bool contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

/// One pass over a graph. What a node reads is looked up once, not once per rule.
class Labeller {
 public:
  Labeller(const RuleSet& rules, const Graph& graph) : rules_(rules), graph_(graph) {
    const size_t count = graph.nodes.size();
    labels_.categories.resize(count);
    labels_.stages.resize(count);
    roots_.reserve(count);
    roles_.resize(count);
    for (size_t i = 0; i < count; ++i) {
      roots_.push_back(roots_of(graph, graph.nodes[i]));
      if (graph.nodes[i].is_view) continue;
      for (const Tensor* weight : weights_of(graph, graph.nodes[i]))
        roles_[i].push_back(role_of(weight->name));
    }
    for (const auto& [name, region] : rules.regions) regions_[name] = nodes_in(region);
  }

  Labels label() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      labels_.categories[i] = graph_.nodes[i].is_view ? kView : kUnsorted;
      if (graph_.nodes[i].is_view) continue;
      for (const Rule& rule : rules_.rules) {
        if (!matches(rule.pattern, i)) continue;
        labels_.categories[i] = rule.category;
        labels_.stages[i] = rule.stage;
        break;
      }
    }
    return std::move(labels_);
  }

 private:
  /// What a region's ends may ask for: what the node itself is.
  [[nodiscard]] bool matches_self(const NodePattern& pattern, size_t i) const {
    const Node& node = graph_.nodes[i];
    if (!pattern.ops.empty() && !matches_any(pattern.ops, node.op)) return false;
    if (!pattern.names.empty() && !matches_any(pattern.names, node.name)) return false;
    if (pattern.roles.empty()) return true;
    return std::any_of(roles_[i].begin(), roles_[i].end(),
                       [&](const std::string& role) { return matches_any(pattern.roles, role); });
  }

  [[nodiscard]] bool matches(const NodePattern& pattern, size_t i) const {
    if (!matches_self(pattern, i)) return false;
    if (pattern.writes && graph_.nodes[i].writes != *pattern.writes) return false;
    if (!pattern.region.empty() && !regions_.at(pattern.region)[i]) return false;
    return matches_reads(pattern, i) && matches_sources(pattern, i);
  }

  [[nodiscard]] bool matches_reads(const NodePattern& pattern, size_t i) const {
    if (pattern.reads.empty()) return true;
    return std::any_of(roots_[i].begin(), roots_[i].end(), [&](const Root& root) {
      return root.tensor != nullptr &&
             std::find(pattern.reads.begin(), pattern.reads.end(), root.tensor->kind) != pattern.reads.end();
    });
  }

  [[nodiscard]] bool matches_sources(const NodePattern& pattern, size_t i) const {
    if (pattern.from.empty() && pattern.from_all.empty() && pattern.from_roles.empty()) return true;
    bool is_from = pattern.from.empty();
    bool is_from_role = pattern.from_roles.empty();
    size_t computed = 0;
    for (const Root& root : roots_[i]) {
      if (root.node < 0) continue;
      const auto source = static_cast<size_t>(root.node);
      const std::string& category = labels_.categories[source];
      ++computed;
      if (!pattern.from_all.empty() && !contains(pattern.from_all, category)) return false;
      is_from = is_from || contains(pattern.from, category);
      is_from_role = is_from_role ||
                     std::any_of(roles_[source].begin(), roles_[source].end(),
                                 [&](const auto& role) { return matches_any(pattern.from_roles, role); });
    }
    return is_from && is_from_role && (pattern.from_all.empty() || computed > 0);
  }

  /// An opening that meets another opening, or the end, before its close is no region: other architectures
  /// use the same weight names outside one.
  [[nodiscard]] std::vector<bool> nodes_in(const Region& region) const {
    std::vector<bool> inside(graph_.nodes.size(), false);
    bool is_open = false;
    size_t opened = 0;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (graph_.nodes[i].is_view) continue;
      if (matches_self(region.from, i)) {
        is_open = true;
        opened = i;
      }
      if (!is_open || !matches_self(region.to, i)) continue;
      for (size_t j = opened; j <= i; ++j) inside[j] = true;
      is_open = false;
    }
    return inside;
  }

  const RuleSet& rules_;
  const Graph& graph_;
  std::vector<std::vector<Root>> roots_;
  std::vector<std::vector<std::string>> roles_;
  std::map<std::string, std::vector<bool>> regions_;
  Labels labels_;
};

}  // namespace

Labels label_nodes(const RuleSet& rules, const Graph& graph) {
  return Labeller(rules, graph).label();
}

std::shared_ptr<const RuleSet> without_category(const RuleSet& rules, const std::string& category) {
  auto broken = std::make_shared<RuleSet>(rules);
  std::erase_if(broken->rules, [&](const Rule& rule) { return rule.category == category; });
  return broken;
}

std::vector<std::string> categories_of(const RuleSet& rules, const Graph& graph) {
  return label_nodes(rules, graph).categories;
}

std::vector<std::string> stages_of(const RuleSet& rules, const Graph& graph) {
  return label_nodes(rules, graph).stages;
}

}  // namespace opledger::core
