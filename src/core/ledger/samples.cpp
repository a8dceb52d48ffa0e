// Selects and reduces; decides nothing about what is true.
#include "core/ledger/samples.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <numeric>

#include "core/stats/summary.h"

namespace opledger::core::detail {

namespace {

void add_units(const WorkloadGraph& graph, SideSamples& samples) {
  for (size_t g = 0; g < graph.graphs.size(); ++g) {
    const int calls = graph.calls_of(static_cast<int>(g));
    samples.unit_calls.insert(samples.unit_calls.end(), graph.graphs[g].units.size(), calls);
  }
}

Status check_lengths(const SideSamples& samples, const Block& block) {
  for (const auto* table : {&block.unit_ns, &block.copy_ns}) {
    if (!table->has_value()) continue;
    for (const std::vector<int64_t>& row : **table) {
      if (samples.graph == nullptr || row.size() == samples.unit_calls.size()) continue;
      return Error::bad_input(
          fmt::format("record: block {} ({} of {}) has {} unit times, the graph of {} has {} units: the "
                      "record is inconsistent",
                      block.place.sequence, block.arm, side_name(block.place.side), row.size(),
                      block.place.workload, samples.unit_calls.size()));
    }
  }
  return {};
}

void add_baselines(SideSamples& samples) {
  // Where all arms of a turn tell what a baseline took, not what its own steps add up to: a host that stalls
  // a few steps of most passes would double that.
  const auto graph = [&](const Block& b, size_t p) {
    const auto speeds = samples.speeds.find(&b);
    return speeds == samples.speeds.end() ? static_cast<double>(b.passes[p].graph_ns)
                                          : speeds->second[p].baseline_ns;
  };
  const auto outside = [](const Block& b, size_t p) {
    return static_cast<double>(b.passes[p].wall_ns - b.passes[p].graph_ns);
  };
  samples.graph_ms = medians_by_group(samples, "baseline", samples.ms_per_ns, graph);
  samples.wall_minus_graph_ms = medians_by_group(samples, "baseline", samples.ms_per_ns, outside);
  for (const auto& [group, graph_ms] : samples.graph_ms)
    samples.wall_ms[group] = graph_ms + samples.wall_minus_graph_ms.at(group);
  for (const Block* block : samples.blocks_of("baseline"))
    samples.baseline_passes += static_cast<int>(block->passes.size());
}

// An arm prepared again may have lost units: those that were excluded, or refused in a later launch. What is
// said of it is said of the units that it always had.
void narrow(Arm& known, const Arm& again) {
  std::erase_if(known.units, [&](const ArmUnit& unit) {
    return std::none_of(again.units.begin(), again.units.end(),
                        [&](const ArmUnit& kept) { return kept.unit == unit.unit; });
  });
  for (const RefusedUnit& refused : again.refused) {
    const bool is_known = std::any_of(known.refused.begin(), known.refused.end(),
                                      [&](const RefusedUnit& one) { return one.unit == refused.unit; });
    if (!is_known) known.refused.push_back(refused);
  }
}

void add_arms(const Record& record, const WorkloadFacts& workload, SideSamples& samples) {
  for (const ArmsFacts& facts : record.arms) {
    if (facts.side != samples.side || facts.workload != workload.id) continue;
    for (const Arm& arm : facts.arms) {
      if (arm.kind != "replay" && arm.kind != "stamped_replay") continue;
      const auto known = std::find_if(samples.arms.begin(), samples.arms.end(),
                                      [&](const Arm& one) { return one.id == arm.id; });
      if (known == samples.arms.end())
        samples.arms.push_back(arm);
      else
        narrow(*known, arm);
    }
  }
}

// What a time of this pass would have been at the speed of its group's baselines, over what it was.
double speed_ratio(const SideSamples& samples, const Block& block, size_t pass) {
  const auto speeds = samples.speeds.find(&block);
  const auto graph = samples.graph_ms.find(block.place.group);
  if (speeds == samples.speeds.end() || graph == samples.graph_ms.end()) return 1;
  return graph->second / samples.ms_per_ns / speeds->second[pass].baseline_ns;
}

template <typename Key>
std::map<Key, double> medians_by(const SideSamples& samples, const std::string& arm, double scale,
                                 const PassFigure& figure, Key (*key_of)(const BlockPlace&)) {
  std::map<Key, std::vector<double>> figures;
  for (const Block* block : samples.blocks_of(arm)) {
    for (size_t pass = 0; pass < block->passes.size(); ++pass) {
      if (const std::optional<double> value = figure(*block, pass))
        figures[key_of(block->place)].push_back(*value);
    }
  }
  std::map<Key, double> medians;
  for (const auto& [key, values] : figures) medians[key] = *median_of(values) * scale;
  return medians;
}

}  // namespace

std::vector<const Block*> SideSamples::blocks_of(const std::string& arm) const {
  std::vector<const Block*> found;
  std::copy_if(blocks.begin(), blocks.end(), std::back_inserter(found),
               [&](const Block* block) { return block->arm == arm; });
  return found;
}

std::vector<const Block*> SideSamples::all_timed() const {
  std::vector<const Block*> all = blocks;
  all.insert(all.end(), dropped_blocks.begin(), dropped_blocks.end());
  return all;
}

int64_t SideSamples::calls_in(const UnitMask& mask) const {
  int64_t calls = 0;
  for (size_t u = 0; u < unit_calls.size(); ++u) calls += mask[u] ? unit_calls[u] : 0;
  return calls;
}

UnitMask SideSamples::mask_of_scope(int scope) const {
  UnitMask mask(unit_calls.size(), false);
  for (size_t u = 0; u < mask.size(); ++u) mask[u] = unit_scope[u] == scope;
  return mask;
}

UnitMask SideSamples::mask_of_all() const {
  return UnitMask(unit_calls.size(), true);
}

std::optional<double> SideSamples::price_of(int group) const {
  if (const auto own = price_ns.find(group); own != price_ns.end()) return own->second;
  return median_of(values_of(price_ns));
}

namespace {

/// Where a timed block belongs: among the samples, or among those of which only the results count.
void sort_in(const Block& block, bool is_lost, SideSamples& samples) {
  const bool is_dropped = is_lost || samples.contamination.drops(block.place.stint);
  if (is_lost) samples.lost_groups.insert(block.place.group);
  (is_dropped ? samples.dropped_blocks : samples.blocks).push_back(&block);
  if (is_dropped && block.arm == "baseline") samples.dropped_passes += static_cast<int>(block.passes.size());
}

}  // namespace

Result<SideSamples> collect_samples(const Record& record, Side side, const WorkloadFacts& workload,
                                    std::vector<int> unit_scope, bool leaves_out) {
  SideSamples samples;
  samples.side = side;
  if (leaves_out) samples.contamination = contamination_of(record, workload.id);
  const std::set<int> common = common_groups(record, workload.id);
  const std::set<int> clean = common_groups(record, workload.id, samples.contamination);
  samples.unit_scope = std::move(unit_scope);
  if (workload.kind == WorkloadKind::kDecode)
    samples.ms_per_ns /= static_cast<double>(std::max<int64_t>(1, workload.tokens_per_pass));
  if (const GraphFacts* facts = record.graph(side, workload.id)) {
    samples.graph = &facts->graph;
    add_units(facts->graph, samples);
  }
  for (const Block& block : record.blocks) {
    if (block.place.side != side || block.place.workload != workload.id) continue;
    if (!block.is_verify && !common.empty() && common.count(block.place.group) == 0) {
      samples.unpaired_groups.insert(block.place.group);
      continue;
    }
    if (const Status status = check_lengths(samples, block); !status) return status.error();
    if (block.is_verify)
      samples.verify_blocks.push_back(&block);
    else
      sort_in(block, !common.empty() && clean.count(block.place.group) == 0, samples);
  }
  std::stable_sort(samples.blocks.begin(), samples.blocks.end(),
                   [](const Block* x, const Block* y) { return x->place.sequence < y->place.sequence; });
  samples.speeds = speeds_of(samples.blocks);
  add_baselines(samples);
  add_arms(record, workload, samples);
  return samples;
}

namespace {

// The median over units, not the mean: one preempted interval of a few milliseconds among 500 read as a
// price of 8 microseconds instead of half a microsecond.
std::optional<double> price_of_pass(const SideSamples& samples, const Block& block, size_t pass) {
  if (!block.unit_ns) return std::nullopt;
  const auto [first, end] = block.rows_of(pass);
  std::vector<double> prices;
  for (size_t u = 0; u < samples.unit_calls.size(); ++u) {
    const double calls = samples.unit_calls[u] / static_cast<double>(end - first);
    for (size_t row = first; row < end && calls > 0; ++row)
      prices.push_back(static_cast<double>((*block.unit_ns)[row][u]) / calls);
  }
  const std::optional<double> price = median_of(prices);
  if (!price) return std::nullopt;
  return *price * speed_ratio(samples, block, pass);
}

}  // namespace

void add_prices(SideSamples& samples) {
  const auto figure = [&](const Block& block, size_t pass) { return price_of_pass(samples, block, pass); };
  samples.price_ns = medians_by_group(samples, "price", 1.0, figure);
  if (!samples.price_ns.empty()) return;
  // It is measured once in a launch group. Without one there would be no stamps; and it is a median of
  // hundreds of intervals, which a preempted thread hardly moves.
  std::map<int, std::vector<double>> dropped;
  for (const Block* block : samples.dropped_blocks) {
    for (size_t pass = 0; block->arm == "price" && pass < block->passes.size(); ++pass) {
      if (const std::optional<double> price = figure(*block, pass))
        dropped[block->place.group].push_back(*price);
    }
  }
  for (const auto& [group, prices] : dropped) samples.price_ns[group] = *median_of(prices);
}

GroupFigures medians_by_group(const SideSamples& samples, const std::string& arm, double scale,
                              const PassFigure& figure) {
  return medians_by<int>(samples, arm, scale, figure, [](const BlockPlace& place) { return place.group; });
}

RoundFigures medians_by_round(const SideSamples& samples, const std::string& arm, double scale,
                              const PassFigure& figure) {
  return medians_by<RoundKey>(samples, arm, scale, figure, [](const BlockPlace& place) {
    return RoundKey{place.group, place.round};
  });
}

TurnFigures medians_by_turn(const SideSamples& samples, const std::string& arm, double scale,
                            const PassFigure& figure) {
  return medians_by<TurnKey>(samples, arm, scale, figure, [](const BlockPlace& place) {
    return TurnKey{{place.group, place.round}, place.turn};
  });
}

double masked_sum(const std::vector<int64_t>& unit_ns, const UnitMask& mask) {
  double sum = 0;
  for (size_t u = 0; u < mask.size(); ++u) sum += mask[u] ? static_cast<double>(unit_ns[u]) : 0;
  return sum;
}

std::vector<double> masked_sums(const Block& block, const std::vector<std::vector<int64_t>>& table,
                                size_t pass, const UnitMask& mask) {
  const auto [first, end] = block.rows_of(pass);
  std::vector<double> sums;
  for (size_t row = first; row < end; ++row) sums.push_back(masked_sum(table[row], mask));
  return sums;
}

std::optional<double> net_units_ns(const SideSamples& samples, const Block& block, size_t pass,
                                   const UnitMask& mask) {
  const std::optional<double> price = samples.price_of(block.place.group);
  if (!block.unit_ns || !price) return std::nullopt;
  return at_speed_of_group(samples, block, pass, masked_sums(block, *block.unit_ns, pass, mask)) -
         *price * static_cast<double>(samples.calls_in(mask));
}

double at_speed_of_group(const SideSamples& samples, const Block& block, size_t pass,
                         const std::vector<double>& steps_ns) {
  const auto speeds = samples.speeds.find(&block);
  const double sum_ns = std::accumulate(steps_ns.begin(), steps_ns.end(), 0.0);
  if (speeds == samples.speeds.end()) return sum_ns;
  const PassSpeed& speed = speeds->second[pass];
  if (speed.step_baseline_ns.size() != steps_ns.size()) return sum_ns * speed_ratio(samples, block, pass);
  std::vector<double> shares;
  for (size_t step = 0; step < steps_ns.size(); ++step)
    shares.push_back(steps_ns[step] / speed.step_baseline_ns[step]);
  return middle_of_steps(shares) * speed.baseline_ns * speed_ratio(samples, block, pass);
}

std::optional<double> length_ns(const SideSamples& samples, const Block& block, size_t pass) {
  const auto speeds = samples.speeds.find(&block);
  const auto graph = samples.graph_ms.find(block.place.group);
  if (speeds == samples.speeds.end() || graph == samples.graph_ms.end()) return std::nullopt;
  return speeds->second[pass].relative_ratio * graph->second / samples.ms_per_ns;
}

std::optional<double> excess_ns(const SideSamples& samples, const Block& block, size_t pass) {
  const std::optional<double> length = length_ns(samples, block, pass);
  if (!length) return std::nullopt;
  return *length - samples.graph_ms.at(block.place.group) / samples.ms_per_ns;
}

Measured measured_of(const GroupFigures& figures) {
  const std::optional<Estimate> estimate = mean_interval(values_of(figures));
  if (!estimate) return {};
  Measured measured{estimate->centre, std::nullopt};
  if (estimate->interval) measured.ci_ms = {estimate->interval->low, estimate->interval->high};
  return measured;
}

GroupFigures paired_difference(const GroupFigures& a, const GroupFigures& b) {
  GroupFigures difference;
  for (const auto& [group, value] : a) {
    if (const auto other = b.find(group); other != b.end()) difference[group] = value - other->second;
  }
  return difference;
}

std::string brief_ms(double ms) {
  const double size = std::abs(ms);
  const int decimals = size >= 999.95 ? 0 : (size >= 99.995 ? 1 : (size >= 9.9995 ? 2 : 3));
  return fmt::format("{:.{}f}", ms, decimals);
}

std::string figure_text(double centre, const std::optional<Interval>& interval) {
  if (!interval) return brief_ms(centre);
  return fmt::format("{} [{}, {}]", brief_ms(centre), brief_ms(interval->low), brief_ms(interval->high));
}

}  // namespace opledger::core::detail
