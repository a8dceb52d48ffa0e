// Look-ups in a record.
#include "core/record/record.h"

#include <algorithm>

namespace opledger::core {

namespace {

template <typename Items, typename Matches>
auto first_match(const Items& items, Matches matches) -> const typename Items::value_type* {
  const auto found = std::find_if(items.begin(), items.end(), matches);
  return found == items.end() ? nullptr : &*found;
}

}  // namespace

const char* side_name(Side side) {
  return side == Side::kA ? "a" : "b";
}

bool is_stamped(std::string_view arm_id) {
  return arm_id == "stamp" || arm_id.rfind("stamped_replay", 0) == 0;
}

const EngineFacts* Record::engine(Side side) const {
  return first_match(engines, [&](const EngineFacts& e) { return e.side == side; });
}

const ModelLine* Record::model(Side side) const {
  return first_match(models, [&](const ModelLine& m) { return m.side == side; });
}

const WorkloadFacts* Record::workload(const std::string& id) const {
  return first_match(workloads, [&](const WorkloadFacts& w) { return w.id == id; });
}

const GraphFacts* Record::graph(Side side, const std::string& workload) const {
  return first_match(graphs, [&](const GraphFacts& g) { return g.side == side && g.workload == workload; });
}

std::pair<size_t, size_t> Block::rows_of(size_t pass) const {
  size_t first = 0;
  const auto rows = [&](size_t p) { return std::max<size_t>(1, passes[p].step_graph_ns.size()); };
  for (size_t p = 0; p < pass; ++p) first += rows(p);
  return {first, first + rows(pass)};
}

}  // namespace opledger::core
