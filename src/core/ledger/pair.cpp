// Joins the two sides and their scopes.
#include "core/ledger/pair.h"

#include <fmt/format.h>

#include "core/ledger/pairing.h"

namespace opledger::core::detail {

namespace {

template <typename Visit>
void for_each_unit(const WorkloadGraph& graph, Visit visit) {
  size_t index = 0;
  for (size_t g = 0; g < graph.graphs.size(); ++g) {
    for (size_t u = 0; u < graph.graphs[g].units.size(); ++u) {
      visit(index++, UnitName{static_cast<int>(g), static_cast<int>(u)}, graph.graphs[g],
            graph.graphs[g].units[u]);
    }
  }
}

int working_nodes(const Graph& graph, const Unit& unit) {
  int nodes = 0;
  for (const int node : unit.nodes) nodes += graph.nodes[static_cast<size_t>(node)].is_view ? 0 : 1;
  return nodes;
}

ScopeSide scope_side(const SideSamples& samples, const Scope& scope, int index,
                     std::optional<int64_t> knee_bytes) {
  ScopeSide side;
  side.units = samples.mask_of_scope(index);
  if (samples.graph != nullptr) {
    for_each_unit(*samples.graph, [&](size_t at, const UnitName&, const Graph& graph, const Unit& unit) {
      if (side.units[at]) side.nodes += working_nodes(graph, unit) * samples.unit_calls[at];
    });
  }
  side.stamp_ms = medians_by_group(samples, "stamp", samples.ms_per_ns, [&](const Block& block, size_t pass) {
    return net_units_ns(samples, block, pass, side.units);
  });
  side.replays = replays_of(samples, scope.name, side.units, knee_bytes);
  return side;
}

struct Work {
  double nodes = 0, bytes = 0, flop = 0;
};

void add_work(const Graph& graph, const Unit& unit, int calls, Work& work) {
  for (const int index : unit.nodes) {
    const Node& node = graph.nodes[static_cast<size_t>(index)];
    work.nodes += node.is_view ? 0 : calls;
    work.bytes += static_cast<double>(node.read_bytes + node.write_bytes) * calls;
    work.flop += static_cast<double>(node.flop) * calls;
  }
}

Excluded excluded_units(const Record& record, const SideSamples& samples, const std::string& workload) {
  Excluded excluded;
  if (samples.graph == nullptr) return excluded;
  Work all;
  Work left_out;
  for_each_unit(*samples.graph, [&](size_t at, const UnitName& name, const Graph& graph, const Unit& unit) {
    const int calls = samples.unit_calls[at];
    add_work(graph, unit, calls, all);
    for (const Event& event : record.events) {
      if (event.kind != "excluded" || event.side != samples.side || event.workload != workload) continue;
      if (!event.unit || !(*event.unit == name)) continue;
      ++excluded.units;
      add_work(graph, unit, calls, left_out);
      const Node& first = graph.nodes[static_cast<size_t>(unit.nodes.front())];
      excluded.texts.push_back(fmt::format("{} ({}): {}", first.name, first.op, event.reason));
      break;
    }
  });
  if (all.nodes > 0) excluded.nodes_ratio = left_out.nodes / all.nodes;
  if (all.bytes > 0) excluded.bytes_ratio = left_out.bytes / all.bytes;
  if (all.flop > 0) excluded.flop_ratio = left_out.flop / all.flop;
  return excluded;
}

}  // namespace

std::array<std::string, 2> engine_labels(const Record& record) {
  const EngineFacts* a = record.engine(Side::kA);
  const EngineFacts* b = record.engine(Side::kB);
  if (a == nullptr || b == nullptr) return {a == nullptr ? "a" : a->spec, b == nullptr ? "b" : b->spec};
  if (a->name != b->name) return {a->name, b->name};
  if (a->spec != b->spec) return {a->spec, b->spec};
  return {a->spec + " (a)", b->spec + " (b)"};
}

Result<PairSamples> collect_pair(const Record& record, const WorkloadFacts& workload, const Scoping& scoping,
                                 std::vector<int> unit_scope_a, std::vector<int> unit_scope_b) {
  Result<SideSamples> a = collect_samples(record, Side::kA, workload, std::move(unit_scope_a));
  if (!a) return a.error();
  Result<SideSamples> b = collect_samples(record, Side::kB, workload, std::move(unit_scope_b));
  if (!b) return b.error();
  tell_at_one_speed(*a, *b);
  add_prices(*a);
  add_prices(*b);
  PairSamples pair;
  pair.record = &record;
  pair.workload = &workload;
  const auto labels = engine_labels(record);
  pair.name_a = labels[0];
  pair.name_b = labels[1];
  pair.a = std::move(*a);
  pair.b = std::move(*b);
  const std::optional<int64_t> knee_bytes = record.cache ? record.cache->knee_bytes : std::nullopt;
  for (size_t i = 0; i < scoping.scopes.size(); ++i) {
    const Scope& scope = scoping.scopes[i];
    ScopeFigures figures{&scope, scope_side(pair.a, scope, static_cast<int>(i), knee_bytes),
                         scope_side(pair.b, scope, static_cast<int>(i), knee_bytes)};
    if (figures.a.nodes + figures.b.nodes > 0) pair.scopes.push_back(std::move(figures));
  }
  pair.excluded_a = excluded_units(record, pair.a, workload.id);
  pair.excluded_b = excluded_units(record, pair.b, workload.id);
  return pair;
}

}  // namespace opledger::core::detail
