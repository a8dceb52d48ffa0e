// On a shared machine 80 steps of four arms side by side told an increment to 1 to 2% of a pass; the same
// arms turn by turn, whose few means need a wide t, to 2 to 4%.
#include "core/ledger/beside.h"

#include <functional>
#include <map>
#include <vector>

namespace opledger::core::detail {

namespace {

// Arms of one turn, whose steps lie side by side: between them are some 50 ms of the machine, not a turn.
struct Beside {
  const Block* stamped = nullptr;  // its copies stamped
  const Block* stamp = nullptr;
  const Block* baseline = nullptr;
  const Block* plain = nullptr;  // nullptr where no such arm is asked for
};

using TurnsBeside = std::map<TurnKey, Beside>;

// Turns that hold all arms that are asked for.
TurnsBeside turns_beside(const SideSamples& samples, const std::string& stamped, const std::string* plain) {
  TurnsBeside turns;
  const auto add = [&](const std::string& arm, const Block* Beside::*member) {
    for (const Block* block : samples.blocks_of(arm))
      turns[{{block->place.group, block->place.round}, block->place.turn}].*member = block;
  };
  add(stamped, &Beside::stamped);
  add("stamp", &Beside::stamp);
  add("baseline", &Beside::baseline);
  if (plain != nullptr) add(*plain, &Beside::plain);
  std::erase_if(turns, [&](const auto& entry) {
    const Beside& turn = entry.second;
    return turn.stamped == nullptr || turn.stamp == nullptr || turn.baseline == nullptr ||
           (plain != nullptr && turn.plain == nullptr);
  });
  return turns;
}

// One step of a pass of all arms of a turn.
struct StepBeside {
  const Beside& turn;
  size_t pass = 0;
  size_t step = 0;
  double price_ms = 0;  // of one clock
  double ms_of_ns = 0;  // what a nanosecond of this step is worth, at the speed of the group
  [[nodiscard]] double graph_ns(const Block* arm) const {
    return static_cast<double>(arm->passes[pass].step_graph_ns[step]);
  }
  [[nodiscard]] double sum_ns(const Block* arm, const std::vector<std::vector<int64_t>>& table,
                              const UnitMask& mask) const {
    return masked_sum(table[arm->rows_of(pass).first + step], mask);
  }
};

using StepFigure = std::function<std::optional<double>(const StepBeside&)>;

bool tells_steps(const Block* arm, size_t pass, size_t steps) {
  return arm == nullptr || (pass < arm->passes.size() && arm->passes[pass].step_graph_ns.size() == steps);
}

void add_steps(const SideSamples& samples, const Beside& turn, const StepFigure& figure,
               std::vector<double>& found) {
  const int group = turn.baseline->place.group;
  const auto speeds = samples.speeds.find(turn.baseline);
  const auto graph_ms = samples.graph_ms.find(group);
  const std::optional<double> price_ns = samples.price_of(group);
  if (speeds == samples.speeds.end() || graph_ms == samples.graph_ms.end() || !price_ns) return;
  for (size_t pass = 0; pass < speeds->second.size(); ++pass) {
    const std::vector<double>& baseline_ns = speeds->second[pass].step_baseline_ns;
    const auto tells = [&](const Block* arm) { return tells_steps(arm, pass, baseline_ns.size()); };
    if (!tells(turn.stamped) || !tells(turn.stamp) || !tells(turn.baseline) || !tells(turn.plain)) continue;
    for (size_t step = 0; step < baseline_ns.size(); ++step) {
      const StepBeside beside{turn, pass, step, *price_ns * samples.ms_per_ns,
                              graph_ms->second / baseline_ns[step]};
      if (const std::optional<double> value = figure(beside)) found.push_back(*value);
    }
  }
}

// Over all steps of all turns; empty for fewer than three turns, or where passes do not tell their steps.
std::optional<Estimate> over_steps(const SideSamples& samples, const TurnsBeside& turns,
                                   const StepFigure& figure) {
  if (turns.size() < kFewestForInterval) return std::nullopt;
  std::vector<double> steps;
  for (const auto& entry : turns) add_steps(samples, entry.second, figure, steps);
  return trimmed_mean_interval(steps);
}

// predicted - increment, per copy.
StepFigure disagreement_of(const ReplayFigures& replay, double clocks) {
  return [&replay, clocks](const StepBeside& at) -> std::optional<double> {
    const Beside& turn = at.turn;
    const double apart_ns = (at.graph_ns(turn.stamped) - at.graph_ns(turn.stamp)) -
                            (at.graph_ns(turn.plain) - at.graph_ns(turn.baseline));
    return (apart_ns * at.ms_of_ns - at.price_ms * clocks) / replay.copies;
  };
}

// c - o: a copy has one clock for all copies of its unit, an original one for itself.
StepFigure copy_excess_of(const ReplayFigures& replay, double clocks) {
  return [&replay, clocks](const StepBeside& at) -> std::optional<double> {
    const Beside& turn = at.turn;
    if (!turn.stamped->copy_ns || !turn.stamp->unit_ns) return std::nullopt;
    const double copy_ns = at.sum_ns(turn.stamped, *turn.stamped->copy_ns, replay.covered);
    const double own_ns = at.sum_ns(turn.stamp, *turn.stamp->unit_ns, replay.covered);
    const double clocks_ms = at.price_ms * clocks;
    return (copy_ns * at.ms_of_ns - clocks_ms) / replay.copies - (own_ns * at.ms_of_ns - clocks_ms);
  };
}

}  // namespace

std::optional<Estimate> copy_excess_by_steps(const SideSamples& samples, const std::string& stamped,
                                             const ReplayFigures& replay) {
  const auto clocks = static_cast<double>(samples.calls_in(replay.covered));
  return over_steps(samples, turns_beside(samples, stamped, nullptr), copy_excess_of(replay, clocks));
}

std::optional<Estimate> disagreement_by_steps(const SideSamples& samples, const std::string& stamped,
                                              const std::string& plain, const ReplayFigures& replay) {
  const auto clocks = static_cast<double>(samples.calls_in(replay.covered));
  return over_steps(samples, turns_beside(samples, stamped, &plain), disagreement_of(replay, clocks));
}

}  // namespace opledger::core::detail
