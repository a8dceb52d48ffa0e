// Both graphs as a census: kinds of work, the forms in which each is executed, and how often. What both have
// is taken off; what stays is paired within its kind, so that a new shape is a change and not a loss and a
// gain.
#include "core/regress/graph_difference.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/graph/sources.h"

namespace opledger::core {

namespace {

struct WorkKind {
  std::string op, category, role;
  bool operator<(const WorkKind& other) const {
    return std::tie(op, category, role) < std::tie(other.op, other.category, other.role);
  }
};

/// How a node does its work.
struct WorkForm {
  std::string shapes;  ///< of its sources and its result, with their types
  std::string unit;    ///< which nodes are executed as one with it; empty: nobody looked
  std::string place;   ///< device and kernel variant
  bool operator<(const WorkForm& other) const {
    return std::tie(shapes, unit, place) < std::tie(other.shapes, other.unit, other.place);
  }
};

/// Executions per pass.
using FormCounts = std::map<WorkForm, int64_t>;
using WorkCensus = std::map<WorkKind, FormCounts>;

std::string shape_text(const std::string& type, const std::array<int64_t, 4>& ne) {
  size_t dimensions = ne.size();
  while (dimensions > 1 && ne.at(dimensions - 1) == 1) --dimensions;
  return fmt::format("{} [{}]", type,
                     fmt::join(ne.begin(), ne.begin() + static_cast<std::ptrdiff_t>(dimensions), ","));
}

std::string source_text(const Graph& graph, int source) {
  if (source >= 0) {
    const Node& node = graph.nodes[static_cast<size_t>(source)];
    return shape_text(node.type, node.ne);
  }
  const Tensor& tensor = graph.tensors[static_cast<size_t>(-1 - source)];
  return shape_text(tensor.variant.empty() ? tensor.type : tensor.type + " " + tensor.variant, tensor.ne);
}

std::string shapes_of(const Graph& graph, const Node& node) {
  std::vector<std::string> sources;
  for (const int source : node.src) sources.push_back(source_text(graph, source));
  return fmt::format("{}{}-> {}", fmt::join(sources, ", "), sources.empty() ? "" : " ",
                     shape_text(node.type, node.ne));
}

std::string role_text(const Graph& graph, const Node& node) {
  std::set<std::string> roles;
  for (const Tensor* weight : weights_of(graph, node)) roles.insert(role_of(weight->name));
  return fmt::format("{}", fmt::join(roles, ","));
}

/// For each node, what is executed as one with it: "a unit of its own", "one unit RMS_NORM+MUL".
std::vector<std::string> unit_texts(const Graph& graph) {
  std::vector<std::string> texts(graph.nodes.size(), "in no unit");
  for (const Unit& unit : graph.units) {
    std::vector<std::string> ops;
    for (const int node : unit.nodes) {
      if (!graph.nodes[static_cast<size_t>(node)].is_view)
        ops.push_back(graph.nodes[static_cast<size_t>(node)].op);
    }
    const std::string text =
        ops.size() > 1 ? fmt::format("one unit {}", fmt::join(ops, "+")) : "a unit of its own";
    for (const int node : unit.nodes) texts[static_cast<size_t>(node)] = text;
  }
  return texts;
}

WorkCensus census_of(const ScopedInput& input, bool has_units) {
  WorkCensus census;
  for (size_t g = 0; g < input.graph->graphs.size(); ++g) {
    const Graph& graph = input.graph->graphs[g];
    const int64_t calls = input.graph->calls_of(static_cast<int>(g));
    const std::vector<std::string> categories = categories_of(*input.rules, graph);
    const std::vector<std::string> units = unit_texts(graph);
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const Node& node = graph.nodes[i];
      if (node.is_view || calls == 0) continue;
      const WorkForm form{shapes_of(graph, node), has_units ? units[i] : "",
                          node.variant.empty() ? node.device : node.device + " " + node.variant};
      census[{node.op, categories[i], role_text(graph, node)}][form] += calls;
    }
  }
  return census;
}

/// Takes off `count` executions of a form.
void take(FormCounts& counts, const WorkForm& form, int64_t count) {
  const auto found = counts.find(form);
  found->second -= count;
  if (found->second == 0) counts.erase(found);
}

void take_common(FormCounts& base, FormCounts& head) {
  for (const auto& [form, count] : FormCounts(base)) {
    const auto same = head.find(form);
    if (same == head.end()) continue;
    const int64_t common = std::min(count, same->second);
    take(base, form, common);
    take(head, form, common);
  }
}

GraphChange change_between(const WorkKind& kind, const WorkForm& before, const WorkForm& after,
                           int64_t count) {
  std::vector<std::string> was;
  std::vector<std::string> is;
  for (const auto part : {&WorkForm::shapes, &WorkForm::unit, &WorkForm::place}) {
    if (before.*part == after.*part) continue;
    was.push_back(before.*part);
    is.push_back(after.*part);
  }
  return {GraphChangeKind::kChanged,
          kind.op,
          kind.category,
          kind.role,
          count,
          fmt::format("{}", fmt::join(was, ", ")),
          fmt::format("{}", fmt::join(is, ", "))};
}

/// Forms may differ in what a change leaves unsaid: such changes are one.
void add_or_count(GraphChange change, std::vector<GraphChange>& changes) {
  const auto same = std::find_if(changes.begin(), changes.end(), [&](const GraphChange& known) {
    return std::tie(known.kind, known.op, known.category, known.role, known.before, known.after) ==
           std::tie(change.kind, change.op, change.category, change.role, change.before, change.after);
  });
  if (same == changes.end())
    changes.push_back(std::move(change));
  else
    same->per_pass += change.per_pass;
}

/// Pairs what both sides have left of one kind; `fits` says which forms may be the same work.
template <typename Fits>
void pair_changed(const WorkKind& kind, FormCounts& base, FormCounts& head, const Fits& fits,
                  std::vector<GraphChange>& changes) {
  for (auto [before, left] : FormCounts(base)) {
    for (const auto& [after, available] : FormCounts(head)) {
      const int64_t count = fits(before, after) ? std::min(left, available) : 0;
      if (count == 0) continue;
      add_or_count(change_between(kind, before, after, count), changes);
      take(base, before, count);
      take(head, after, count);
      left -= count;
    }
  }
}

void add_changes(const WorkKind& kind, FormCounts base, FormCounts head, std::vector<GraphChange>& changes) {
  take_common(base, head);
  // Where shapes are alike the rest is a matter of fusion or place: those are surely the same work.
  pair_changed(
      kind, base, head, [](const WorkForm& x, const WorkForm& y) { return x.shapes == y.shapes; }, changes);
  pair_changed(
      kind, base, head, [](const WorkForm&, const WorkForm&) { return true; }, changes);
  const auto add_one_sided = [&](GraphChangeKind change, const FormCounts& counts) {
    const bool is_added = change == GraphChangeKind::kAdded;
    for (const auto& [form, count] : counts) {
      const std::optional<std::string> none;
      add_or_count({change, kind.op, kind.category, kind.role, count, is_added ? none : form.shapes,
                    is_added ? form.shapes : none},
                   changes);
    }
  };
  add_one_sided(GraphChangeKind::kRemoved, base);
  add_one_sided(GraphChangeKind::kAdded, head);
}

}  // namespace

const char* graph_change_name(GraphChangeKind kind) {
  if (kind == GraphChangeKind::kAdded) return "added";
  return kind == GraphChangeKind::kRemoved ? "removed" : "changed";
}

std::vector<GraphChange> graph_changes(const ScopedInput& base, const ScopedInput& head) {
  const bool has_units = base.graph->probe_ran && head.graph->probe_ran;
  const WorkCensus before = census_of(base, has_units);
  const WorkCensus after = census_of(head, has_units);
  WorkCensus kinds = before;
  kinds.insert(after.begin(), after.end());
  std::vector<GraphChange> changes;
  for (const auto& entry : kinds) {
    const auto counts_in = [&](const WorkCensus& census) {
      const auto found = census.find(entry.first);
      return found == census.end() ? FormCounts{} : found->second;
    };
    add_changes(entry.first, counts_in(before), counts_in(after), changes);
  }
  return changes;
}

}  // namespace opledger::core
