// Pairs each stamped replay with its plain twin and tells both turn by turn, every pass at the speed of its
// group by the baselines beside it; where passes tell their steps, beside.h compares them.
#include "core/ledger/replay.h"

#include <algorithm>
#include <list>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/ledger/beside.h"
#include "core/stats/summary.h"

namespace opledger::core::detail {

namespace {

std::vector<int> graph_offsets(const WorkloadGraph& graph) {
  std::vector<int> offsets{0};
  for (const Graph& g : graph.graphs) offsets.push_back(offsets.back() + static_cast<int>(g.units.size()));
  return offsets;
}

std::optional<size_t> unit_index(const WorkloadGraph& graph, const UnitName& name) {
  const std::vector<int> offsets = graph_offsets(graph);
  if (static_cast<size_t>(name.graph) + 1 >= offsets.size()) return std::nullopt;
  const int index = offsets[static_cast<size_t>(name.graph)] + name.unit;
  if (index >= offsets[static_cast<size_t>(name.graph) + 1]) return std::nullopt;
  return static_cast<size_t>(index);
}

UnitMask covered_units(const SideSamples& samples, const Arm& arm, const UnitMask& scope) {
  UnitMask mask = arm.units.empty() ? scope : UnitMask(scope.size(), false);
  if (samples.graph == nullptr) return mask;
  for (const ArmUnit& unit : arm.units) {
    if (const auto index = unit_index(*samples.graph, unit.unit)) mask[*index] = true;
  }
  for (const RefusedUnit& unit : arm.refused) {
    if (const auto index = unit_index(*samples.graph, unit.unit)) mask[*index] = false;
  }
  return mask;
}

// What of an arm over several rows concerns one of them.
Arm part_of(const SideSamples& samples, Arm arm, const UnitMask& scope) {
  const auto is_outside = [&](const auto& unit) {
    const auto index = samples.graph == nullptr ? std::nullopt : unit_index(*samples.graph, unit.unit);
    return !index || !scope[*index];
  };
  std::erase_if(arm.units, is_outside);
  std::erase_if(arm.refused, is_outside);
  return arm;
}

bool is_read_from_cache(const Arm& arm, std::optional<int64_t> knee_bytes, int64_t pass_bytes) {
  if (!knee_bytes || pass_bytes < *knee_bytes) return false;
  int64_t near = 0;
  int64_t all = 0;
  for (const ArmUnit& unit : arm.units) {
    if (!unit.reuse_distance_bytes) continue;
    all += unit.read_bytes;
    if (*unit.reuse_distance_bytes < *knee_bytes) near += unit.read_bytes;
  }
  return all > 0 && 2 * near > all;
}

bool reads_weights(const Graph& graph, const Unit& unit) {
  return std::any_of(unit.nodes.begin(), unit.nodes.end(), [&](int node) {
    const std::vector<int>& sources = graph.nodes[static_cast<size_t>(node)].src;
    return std::any_of(sources.begin(), sources.end(), [&](int source) {
      return source < 0 && graph.tensors[static_cast<size_t>(-1 - source)].kind == TensorKind::kWeight;
    });
  });
}

// Units without weights read the same either way: only a unit that has some can fall back.
int count_fallen_back(const SideSamples& samples, const Arm& arm) {
  if (samples.graph == nullptr) return 0;
  int count = 0;
  for (const ArmUnit& unit : arm.units) {
    if (unit.weights == unit.asked_weights || !unit_index(*samples.graph, unit.unit)) continue;
    const Graph& graph = samples.graph->graphs[static_cast<size_t>(unit.unit.graph)];
    if (reads_weights(graph, graph.units[static_cast<size_t>(unit.unit.unit)])) ++count;
  }
  return count;
}

std::string weights_in_id(const std::string& id) {
  const size_t last = id.rfind(':');
  const size_t before = last == std::string::npos || last == 0 ? std::string::npos : id.rfind(':', last - 1);
  return before == std::string::npos ? "same" : id.substr(before + 1, last - before - 1);
}

// A figure of the turn; of its round where the turn has none, else of its whole launch group.
struct Reference {
  TurnFigures by_turn;
  RoundFigures by_round;
  GroupFigures by_group;
  [[nodiscard]] std::optional<double> at(const TurnKey& key) const {
    if (const auto turn = by_turn.find(key); turn != by_turn.end()) return turn->second;
    if (const auto round = by_round.find(key.round); round != by_round.end()) return round->second;
    return of_group(key);
  }
  [[nodiscard]] std::optional<double> of_group(const TurnKey& key) const {
    const auto group = by_group.find(key.round.first);
    return group == by_group.end() ? std::nullopt : std::optional(group->second);
  }
};

Reference reference(const SideSamples& samples, const std::string& arm, double scale,
                    const PassFigure& figure) {
  return {medians_by_turn(samples, arm, scale, figure), medians_by_round(samples, arm, scale, figure),
          medians_by_group(samples, arm, scale, figure)};
}

// How much longer the pass was than the baselines beside it, `clocks` prices taken off.
PassFigure excess_over_baseline(const SideSamples& samples, int64_t clocks) {
  return [&samples, clocks](const Block& block, size_t pass) -> std::optional<double> {
    const std::optional<double> excess = excess_ns(samples, block, pass);
    if (!excess || clocks == 0) return excess;
    const auto price = samples.price_of(block.place.group);
    if (!price) return std::nullopt;
    return *excess - *price * static_cast<double>(clocks);
  };
}

PassFigure net_copies(const SideSamples& samples, const UnitMask& covered) {
  return [&samples, covered](const Block& block, size_t pass) -> std::optional<double> {
    const auto price = samples.price_of(block.place.group);
    if (!block.copy_ns || !price) return std::nullopt;
    // One interval per unit, however many copies it holds.
    return at_speed_of_group(samples, block, pass, masked_sums(block, *block.copy_ns, pass, covered)) -
           *price * static_cast<double>(samples.calls_in(covered));
  };
}

PassFigure net_originals(const SideSamples& samples, const UnitMask& covered) {
  return [&samples, covered](const Block& block, size_t pass) {
    return net_units_ns(samples, block, pass, covered);
  };
}

std::optional<double> middle(const TurnFigures& figures) {
  return median_of(values_of(figures));
}

void add_plain(const SideSamples& samples, const std::string& arm, ReplayFigures& out) {
  const double scale = samples.ms_per_ns / out.copies;
  const PassFigure excess = excess_over_baseline(samples, 0);
  out.increment_ms = medians_by_group(samples, arm, scale, excess);
  out.increment_by_turn = medians_by_turn(samples, arm, scale, excess);
}

void add_stamped(const SideSamples& samples, const Arm& stamped_arm, const Arm* plain, int copies,
                 ReplayFigures& out) {
  const std::string& arm = stamped_arm.id;
  const bool is_shared = stamped_arm.scope == kSmallRows;
  const double ms = samples.ms_per_ns;
  const int64_t all = samples.calls_in(samples.mask_of_all());
  const int64_t covered = samples.calls_in(out.covered);
  const TurnFigures c = medians_by_turn(samples, arm, ms / copies, net_copies(samples, out.covered));
  const TurnFigures beside = medians_by_turn(samples, arm, ms, net_originals(samples, out.covered));
  const TurnFigures excess = medians_by_turn(samples, arm, ms, excess_over_baseline(samples, all + covered));
  const Reference original = reference(samples, "stamp", ms, net_originals(samples, out.covered));
  const Reference stamped = reference(samples, "stamp", ms, excess_over_baseline(samples, all));
  const Reference increment =
      plain == nullptr ? Reference{}
                       : reference(samples, plain->id, ms / copies, excess_over_baseline(samples, 0));

  TurnFigures o, predicted, neighbours, copy_excess, disagreement;
  for (const auto& [key, copy] : c) {
    const auto own = original.at(key);
    if (!own) continue;
    o[key] = *own;
    copy_excess[key] = copy - *own;
    const auto total = excess.find(key);
    const auto next_to_it = beside.find(key);
    // Every turn of the launch has a stamped pass: all of them know better than one how much longer it is.
    const auto untouched = stamped.of_group(key);
    // An arm over several rows lengthens the pass by all of them.
    if (is_shared || total == excess.end() || next_to_it == beside.end() || !untouched) continue;
    // The parts add up to the difference of the two stamped passes; taking the neighbours as what is left
    // counts head and tail among them.
    predicted[key] = (total->second - *untouched) / copies;
    neighbours[key] = total->second - *untouched - copies * copy - (next_to_it->second - *own);
    if (const auto own_increment = increment.at(key)) disagreement[key] = predicted[key] - *own_increment;
  }
  out.copy_ms = middle(c);
  out.original_beside_ms = middle(beside);
  out.original_ms = middle(o);
  out.neighbours_ms = middle(neighbours);
  out.predicted_ms = middle(predicted);
  out.copy_excess = copy_excess_by_steps(samples, arm, out);
  if (!out.copy_excess) out.copy_excess = trimmed_mean_interval(values_of(copy_excess));
  if (plain != nullptr && !is_shared) out.disagreement = disagreement_by_steps(samples, arm, plain->id, out);
  if (!out.disagreement) out.disagreement = trimmed_mean_interval(values_of(disagreement));
}

void add_increment_excess(const SideSamples& samples, ReplayFigures& out) {
  const Reference original =
      reference(samples, "stamp", samples.ms_per_ns, net_originals(samples, out.covered));
  TurnFigures excess;
  for (const auto& [key, increment] : out.increment_by_turn) {
    if (const auto own = original.at(key)) excess[key] = increment - *own;
  }
  out.increment_excess = trimmed_mean_interval(values_of(excess));
  if (!out.original_ms) out.original_ms = median_of(values_of(original.by_group));
}

// The plain twin of a stamped arm: the same weights and copies.
const Arm* plain_twin(const std::vector<const Arm*>& plain, const Arm& stamped) {
  const auto twin = std::find_if(plain.begin(), plain.end(), [&](const Arm* arm) {
    return weights_in_id(arm->id) == weights_in_id(stamped.id) && arm->copies == stamped.copies;
  });
  return twin == plain.end() ? nullptr : *twin;
}

ReplayFigures figures_of(const SideSamples& samples, const Arm& named_by, const Arm* plain,
                         const Arm* stamped, const UnitMask& scope, std::optional<int64_t> knee_bytes) {
  ReplayFigures out;
  out.weights = weights_in_id(named_by.id);
  out.copies = std::max(1, named_by.copies.value_or(1));
  out.covered = covered_units(samples, named_by, scope);
  out.refused_units = static_cast<int>(named_by.refused.size());
  out.fallen_back_units = count_fallen_back(samples, named_by);
  out.is_warm =
      samples.graph != nullptr && is_read_from_cache(named_by, knee_bytes, pass_weight_bytes(*samples.graph));
  if (plain != nullptr) {
    add_plain(samples, plain->id, out);
    add_increment_excess(samples, out);
  }
  if (stamped != nullptr) add_stamped(samples, *stamped, plain, out.copies, out);
  return out;
}

// The same weights are as far away as the original's only for the first copy.
int weights_rank(const ReplayFigures& replay) {
  if (replay.weights == "sibling") return 0;
  if (replay.weights == "same" && replay.copies == 1) return 1;
  return replay.weights == "shadow" ? 2 : 3;
}

}  // namespace

std::vector<ReplayFigures> replays_of(const SideSamples& samples, const std::string& scope_name,
                                      const UnitMask& scope, std::optional<int64_t> knee_bytes) {
  std::vector<const Arm*> plain;
  std::vector<const Arm*> stamped;
  std::list<Arm> parts;
  for (const Arm& arm : samples.arms) {
    if (samples.blocks_of(arm.id).empty()) continue;
    if (arm.scope == kSmallRows) {
      Arm part = part_of(samples, arm, scope);
      if (!part.units.empty()) stamped.push_back(&parts.emplace_back(std::move(part)));
    } else if (arm.scope == scope_name) {
      (arm.kind == "replay" ? plain : stamped).push_back(&arm);
    }
  }
  std::vector<ReplayFigures> found;
  std::set<const Arm*> paired;
  for (const Arm* arm : stamped) {
    const Arm* twin = plain_twin(plain, *arm);
    paired.insert(twin);
    found.push_back(figures_of(samples, *arm, twin, arm, scope, knee_bytes));
  }
  for (const Arm* arm : plain) {
    if (paired.count(arm) == 0) found.push_back(figures_of(samples, *arm, arm, nullptr, scope, knee_bytes));
  }
  std::stable_sort(found.begin(), found.end(), [](const ReplayFigures& x, const ReplayFigures& y) {
    return std::tuple(!x.copy_ms, x.increment_ms.empty(), weights_rank(x), -x.copies) <
           std::tuple(!y.copy_ms, y.increment_ms.empty(), weights_rank(y), -y.copies);
  });
  return found;
}

int64_t pass_weight_bytes(const WorkloadGraph& graph) {
  std::map<std::string, int64_t> weights;
  for (const Graph& g : graph.graphs) {
    for (const Tensor& tensor : g.tensors) {
      if (tensor.kind == TensorKind::kWeight) weights[tensor.name] = tensor.bytes;
    }
  }
  int64_t sum = 0;
  for (const auto& entry : weights) sum += entry.second;
  return sum;
}

}  // namespace opledger::core::detail
