// Keys for rows by category, role, layer and op. Names of nodes are used for one thing only: the layer of a
// node that reads no weight.
#include "core/scopes/row_keys.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/graph/sources.h"

namespace opledger::core {

namespace {

using Keys = std::vector<std::vector<std::string>>;

void add_key(std::vector<std::string>& keys, const std::string& key) {
  if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
}

Keys category_keys(const Graph& graph, const Labels& labels) {
  Keys keys(graph.nodes.size());
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = {labels.categories[i]};
  return keys;
}

/// For each node, the working nodes that read it, views followed.
std::vector<std::vector<size_t>> readers_of(const Graph& graph) {
  std::vector<std::vector<size_t>> readers(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].is_view) continue;
    for (const Root& root : roots_of(graph, graph.nodes[i])) {
      if (root.node >= 0) readers[static_cast<size_t>(root.node)].push_back(i);
    }
  }
  return readers;
}

/// Roles of the weights that a node reads, a bias under the role of its product.
std::vector<std::string> own_roles(const Graph& graph, const Node& node) {
  std::vector<std::string> roles;
  for (const Tensor* weight : weights_of(graph, node)) {
    std::string role = role_of(weight->name);
    if (role.ends_with(".bias")) role.resize(role.size() - 5);
    add_key(roles, role);
  }
  return roles;
}

/// Adds to the keys of node `to` those of `from`, when the two are of one category.
void inherit_roles(Keys& keys, const Labels& labels, size_t from, size_t to) {
  if (labels.categories[from] != labels.categories[to]) return;
  for (const auto& key : keys[from]) add_key(keys[to], key);
}

/// Roles by weight; a node without one takes those of its sources in the same category (an activation between
/// two products), else those of its readers in the same category (a norm before its weight), else its
/// category.
Keys role_keys(const RuleSet& rules, const Graph& graph, const Labels& labels) {
  Keys keys(graph.nodes.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    if (graph.nodes[i].is_view) continue;
    const auto fixed = rules.category_roles.find(labels.categories[i]);
    keys[i] = fixed == rules.category_roles.end() ? own_roles(graph, graph.nodes[i])
                                                  : std::vector<std::string>{fixed->second};
    if (!keys[i].empty()) continue;
    for (const Root& root : roots_of(graph, graph.nodes[i])) {
      if (root.node >= 0) inherit_roles(keys, labels, static_cast<size_t>(root.node), i);
    }
  }
  const auto readers = readers_of(graph);
  for (size_t i = keys.size(); i-- > 0;) {
    if (graph.nodes[i].is_view || !keys[i].empty()) continue;
    for (const size_t reader : readers[i]) inherit_roles(keys, labels, reader, i);
    if (keys[i].empty()) keys[i] = {labels.categories[i]};
  }
  return keys;
}

/// Layer that a node itself tells: by what it reads or by its name; "input" and "output" outside all layers.
std::string own_layer(const Graph& graph, const Node& node, const std::string& category) {
  if (category == "embedding") return "input";
  if (category == "lm_head") return "output";
  for (const Root& root : roots_of(graph, node)) {
    if (root.tensor == nullptr || root.tensor->kind == TensorKind::kInput) continue;
    if (const auto layer = layer_of_tensor(root.tensor->name)) return fmt::format("layer {}", *layer);
    if (root.tensor->kind == TensorKind::kWeight && root.tensor->name.starts_with("output")) return "output";
  }
  if (const auto layer = layer_of_node(node.name)) return fmt::format("layer {}", *layer);
  return {};
}

Keys layer_keys(const Graph& graph, const Labels& labels) {
  const auto readers = readers_of(graph);
  std::vector<std::string> own(graph.nodes.size());
  for (size_t i = 0; i < own.size(); ++i) {
    if (!graph.nodes[i].is_view) own[i] = own_layer(graph, graph.nodes[i], labels.categories[i]);
  }
  Keys keys(graph.nodes.size());
  // Engines execute layer after layer: what tells nothing itself belongs with what reads it in the same
  // category (a norm before its weight), else with what came before.
  std::string last = "input";
  for (size_t i = 0; i < keys.size(); ++i) {
    if (graph.nodes[i].is_view) continue;
    std::string layer = own[i];
    for (const size_t reader : readers[i]) {
      if (!layer.empty()) break;
      if (labels.categories[reader] == labels.categories[i]) layer = own[reader];
    }
    if (layer.empty()) layer = last;
    keys[i] = {layer};
    last = layer;
  }
  return keys;
}

Keys op_keys(const RuleSet& rules, const Graph& graph, const Labels& labels) {
  Keys keys(graph.nodes.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    if (graph.nodes[i].is_view) continue;
    // An op's kind is dropped ("UNARY:SILU" is UNARY): a fused op does not say which kind it holds.
    const std::string op = graph.nodes[i].op.substr(0, graph.nodes[i].op.find(':'));
    const auto same = rules.same_work.find(op);
    const auto parts = same == rules.same_work.end() ? std::vector<std::string>{op} : same->second;
    for (const auto& part : parts) add_key(keys[i], fmt::format("{}:{}", labels.categories[i], part));
  }
  return keys;
}

Keys plain_keys(const RuleSet& rules, const Graph& graph, const Labels& labels, RowKind rows) {
  switch (rows) {
    case RowKind::kRole:
      return role_keys(rules, graph, labels);
    case RowKind::kLayer:
      return layer_keys(graph, labels);
    case RowKind::kOp:
      return op_keys(rules, graph, labels);
    case RowKind::kCategory:
      break;
  }
  return category_keys(graph, labels);
}

}  // namespace

NodeKeys row_keys(const RuleSet& rules, const Graph& graph, RowKind rows) {
  NodeKeys result{label_nodes(rules, graph), {}};
  result.keys = plain_keys(rules, graph, result.labels, rows);
  for (size_t i = 0; i < result.keys.size(); ++i) {
    if (graph.nodes[i].is_view) result.keys[i].clear();
    // Layers are cut alike everywhere, so a stage needs no row of its own there.
    if (rows == RowKind::kLayer || result.labels.stages[i].empty() || graph.nodes[i].is_view) continue;
    result.keys[i] = {kStageMark + result.labels.stages[i]};
  }
  return result;
}

}  // namespace opledger::core
