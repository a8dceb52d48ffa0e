// A shared machine changed its speed by a fifth every few seconds: the medians of two engines that took turns
// each second then differ by whose turns met the slow moments. What was measured side by side met the same
// ones.
#include "core/ledger/pairing.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/stats/interval.h"
#include "core/stats/summary.h"

namespace opledger::core::detail {

namespace {

constexpr size_t kFewestPairs = 3;

using BaselinesByStint = std::map<int64_t, std::vector<const Block*>>;

BaselinesByStint baselines_by_stint(const SideSamples& samples, int group) {
  BaselinesByStint by_stint;
  for (const Block* block : samples.blocks_of("baseline")) {
    if (block->place.group == group) by_stint[block->place.stint].push_back(block);
  }
  return by_stint;
}

// The baseline's steps of a stint, in order; empty where passes do not tell them.
std::vector<double> steps_of_stint(const SideSamples& samples, const std::vector<const Block*>& baselines) {
  std::vector<double> steps;
  for (const Block* block : baselines) {
    const auto speeds = samples.speeds.find(block);
    if (speeds == samples.speeds.end()) {
      // A baseline alone in its turn: its own steps are all there is.
      for (const Pass& pass : block->passes)
        steps.insert(steps.end(), pass.step_graph_ns.begin(), pass.step_graph_ns.end());
      continue;
    }
    for (const PassSpeed& pass : speeds->second)
      steps.insert(steps.end(), pass.step_baseline_ns.begin(), pass.step_baseline_ns.end());
  }
  return steps;
}

// In a shared stint each step has the other engine's same step within a tenth of a second.
std::vector<double> log_ratios_of_steps(const SideSamples& a, const SideSamples& b, int group) {
  std::vector<double> logs;
  const BaselinesByStint stints_b = baselines_by_stint(b, group);
  for (const auto& [stint, baselines] : baselines_by_stint(a, group)) {
    const auto shared = stints_b.find(stint);
    if (shared == stints_b.end()) continue;
    const std::vector<double> steps_a = steps_of_stint(a, baselines);
    const std::vector<double> steps_b = steps_of_stint(b, shared->second);
    if (steps_a.size() != steps_b.size()) continue;
    for (size_t i = 0; i < steps_a.size(); ++i) logs.push_back(std::log(steps_a[i] / steps_b[i]));
  }
  return logs;
}

struct StintLevel {
  Side side;
  int64_t stint;
  double graph_ns;
};

std::vector<double> baseline_times(const SideSamples& samples, const Block& block) {
  std::vector<double> times;
  const auto speeds = samples.speeds.find(&block);
  for (size_t pass = 0; pass < block.passes.size(); ++pass) {
    times.push_back(speeds == samples.speeds.end() ? static_cast<double>(block.passes[pass].graph_ns)
                                                   : speeds->second[pass].baseline_ns);
  }
  return times;
}

void add_levels(const SideSamples& samples, int group, std::vector<StintLevel>& levels) {
  for (const auto& [stint, baselines] : baselines_by_stint(samples, group)) {
    std::vector<double> times;
    for (const Block* block : baselines) {
      const std::vector<double> of_block = baseline_times(samples, *block);
      times.insert(times.end(), of_block.begin(), of_block.end());
    }
    levels.push_back({samples.side, stint, *median_of(times)});
  }
}

// Stints lie A B, B A, A B: each is in one pair at most, so a steady drift lengthens either side equally
// often.
std::vector<double> log_ratios_of_stints(const SideSamples& a, const SideSamples& b, int group) {
  std::vector<StintLevel> levels;
  add_levels(a, group, levels);
  add_levels(b, group, levels);
  std::sort(levels.begin(), levels.end(),
            [](const StintLevel& x, const StintLevel& y) { return x.stint < y.stint; });
  std::vector<double> logs;
  for (size_t i = 0; i + 1 < levels.size(); ++i) {
    if (levels[i].side == levels[i + 1].side) continue;
    const double ratio = std::log(levels[i].graph_ns / levels[i + 1].graph_ns);
    logs.push_back(levels[i].side == Side::kA ? ratio : -ratio);
    ++i;
  }
  return logs;
}

void set_graph(SideSamples& samples, int group, double graph_ms) {
  samples.graph_ms[group] = graph_ms;
  samples.wall_ms[group] = graph_ms + samples.wall_minus_graph_ms.at(group);
}

}  // namespace

void tell_at_one_speed(SideSamples& a, SideSamples& b) {
  for (const auto& [group, graph_a_ms] : GroupFigures(a.graph_ms)) {
    const auto graph_b = b.graph_ms.find(group);
    if (graph_b == b.graph_ms.end() || graph_a_ms <= 0 || graph_b->second <= 0) continue;
    std::vector<double> logs = log_ratios_of_steps(a, b, group);
    if (logs.size() < kFewestPairs) logs = log_ratios_of_stints(a, b, group);
    if (logs.size() < kFewestPairs) continue;
    const double half = trimmed_mean_interval(logs)->centre / 2;
    const double middle_ms = std::sqrt(graph_a_ms * graph_b->second);
    set_graph(a, group, middle_ms * std::exp(half));
    set_graph(b, group, middle_ms * std::exp(-half));
  }
}

}  // namespace opledger::core::detail
