// On a shared machine of two cores 19 turns of 16 steps told the length of an arm to 0.4 to 0.7% of a pass by
// sums, to 0.2 to 0.4% by steps; the same time of passes one after the other, to 2 to 3%.
#include "core/ledger/speed.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "core/stats/interval.h"
#include "core/stats/summary.h"

namespace opledger::core::detail {

namespace {

using Blocks = std::vector<const Block*>;

bool is_baseline(const Block* block) {
  return block->arm == "baseline" && !block->passes.empty();
}

// One pass of every arm of a turn that tells its steps, the baseline first; empty without one.
std::vector<const std::vector<int64_t>*> steps_of_turn(const Blocks& turn, size_t pass) {
  std::vector<const std::vector<int64_t>*> arms;
  const auto baseline = std::find_if(turn.begin(), turn.end(), is_baseline);
  if (baseline == turn.end() || pass >= (*baseline)->passes.size()) return arms;
  arms.push_back(&(*baseline)->passes[pass].step_graph_ns);
  if (arms.front()->empty()) return {};
  for (const Block* block : turn) {
    if (block == *baseline || pass >= block->passes.size()) continue;
    const std::vector<int64_t>& steps = block->passes[pass].step_graph_ns;
    if (steps.size() == arms.front()->size()) arms.push_back(&steps);
  }
  return arms;
}

// One disturbed step must not lengthen an arm.
double relative_length(const std::vector<int64_t>& steps, const std::vector<int64_t>& baseline) {
  std::vector<double> ratios;
  for (size_t i = 0; i < steps.size(); ++i)
    ratios.push_back(static_cast<double>(steps[i]) / static_cast<double>(baseline[i]));
  return middle_of_steps(ratios);
}

// What a baseline took step by step, as all arms together saw it: the median over arms, each told as a
// baseline.
std::vector<double> baseline_of_turn(const std::vector<const std::vector<int64_t>*>& arms,
                                     const std::vector<double>& relative) {
  std::vector<double> steps;
  for (size_t step = 0; step < arms.front()->size(); ++step) {
    std::vector<double> seen;
    for (size_t arm = 0; arm < arms.size(); ++arm)
      seen.push_back(static_cast<double>((*arms[arm])[step]) / relative[arm]);
    steps.push_back(*median_of(seen));
  }
  return steps;
}

void add_turn(const Blocks& turn, Speeds& speeds) {
  size_t passes = 0;
  for (const Block* block : turn) passes = std::max(passes, block->passes.size());
  for (size_t pass = 0; pass < passes; ++pass) {
    const auto arms = steps_of_turn(turn, pass);
    if (arms.size() < 2) return;
    std::vector<double> relative;
    relative.reserve(arms.size());
    for (const auto* steps : arms) relative.push_back(relative_length(*steps, *arms.front()));
    const std::vector<double> steps = baseline_of_turn(arms, relative);
    const double baseline_ns = static_cast<double>(steps.size()) * middle_of_steps(steps);
    for (const Block* block : turn) {
      for (size_t arm = 0; arm < arms.size(); ++arm) {
        if (pass < block->passes.size() && arms[arm] == &block->passes[pass].step_graph_ns)
          speeds[block].push_back({baseline_ns, relative[arm], steps});
      }
    }
  }
}

double median_graph_ns(const Block& block) {
  std::vector<double> times;
  for (const Pass& pass : block.passes) times.push_back(static_cast<double>(pass.graph_ns));
  return *median_of(times);
}

// The baselines of a block's own turn; where it has none, the nearest on both sides. Each is its block's
// median, so that one disturbed pass does not shift every figure of the round.
std::optional<double> baseline_beside(const Blocks& blocks, size_t place) {
  const BlockPlace& own = blocks[place]->place;
  const auto is_near = [&](const Block* block) {
    return is_baseline(block) && block->place.group == own.group;
  };
  const auto at = blocks.begin() + static_cast<std::ptrdiff_t>(place);
  const auto before = std::find_if(std::make_reverse_iterator(at), blocks.rend(), is_near);
  const auto after = std::find_if(at + 1, blocks.end(), is_near);
  Blocks found;
  if (before != blocks.rend()) found.push_back(*before);
  if (after != blocks.end()) found.push_back(*after);
  const auto is_elsewhere = [&](const Block* block) { return block->place.turn != own.turn; };
  if (!std::all_of(found.begin(), found.end(), is_elsewhere)) std::erase_if(found, is_elsewhere);
  std::vector<double> times;
  for (const Block* block : found) times.push_back(median_graph_ns(*block));
  return mean_of(times);
}

void add_beside(const Blocks& blocks, size_t place, Speeds& speeds) {
  const Block* block = blocks[place];
  const std::optional<double> baseline_ns = baseline_beside(blocks, place);
  if (!baseline_ns || *baseline_ns <= 0) return;
  std::vector<PassSpeed> of_block;
  for (const Pass& pass : block->passes)
    of_block.push_back({*baseline_ns, static_cast<double>(pass.graph_ns) / *baseline_ns, {}});
  speeds[block] = std::move(of_block);
}

}  // namespace

double middle_of_steps(const std::vector<double>& steps) {
  std::vector<double> logs;
  for (const double step : steps) {
    if (step <= 0) return *median_of(steps);
    logs.push_back(std::log(step));
  }
  return std::exp(trimmed_mean_interval(logs)->centre);
}

Speeds speeds_of(const std::vector<const Block*>& blocks) {
  Speeds speeds;
  for (auto at = blocks.begin(); at != blocks.end();) {
    const auto end = std::find_if(at, blocks.end(),
                                  [&](const Block* block) { return block->place.turn != (*at)->place.turn; });
    add_turn({at, end}, speeds);
    at = end;
  }
  for (size_t place = 0; place < blocks.size(); ++place) {
    const auto known = speeds.find(blocks[place]);
    const bool is_whole = known != speeds.end() && known->second.size() == blocks[place]->passes.size();
    if (!is_whole && !is_baseline(blocks[place])) add_beside(blocks, place, speeds);
  }
  return speeds;
}

}  // namespace opledger::core::detail
