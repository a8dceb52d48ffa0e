// Costs are estimates from passes already seen; nothing here reads a clock.
#include "session/schedule.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

namespace opledger::session {
namespace {

// Longer steps need no warm-up: what the other engine leaves in the caches costs them a hundredth. And one
// pass of them tells the price: of hundreds of intervals the median is taken.
constexpr double kLongStepNs = 1e8;

bool is_in_round(const ArmPlan& arm, const RoundOptions& options) {
  if (arm.kind == "baseline") return false;
  if (arm.kind == "price") return options.with_price;
  if (arm.kind == "empty") return options.with_empty;
  return true;
}

bool is_price(const ArmPlan* arm) {
  return arm->kind == "price";
}

// Enough to last `time_ns`, from 1 to 8.
int times_within(double time_ns, double each_ns) {
  if (!(each_ns > 0)) return 1;
  return static_cast<int>(std::clamp(std::ceil(time_ns / each_ns), 1.0, 8.0));
}

// Arms by what they are compared with: those of one scope beside a stamp, those of none beside each other.
std::vector<std::vector<const ArmPlan*>> arms_by_turn(const std::vector<ArmPlan>& arms,
                                                      const RoundOptions& options) {
  std::vector<std::vector<const ArmPlan*>> turns;
  std::map<std::string, size_t> turn_of_scope;
  std::vector<const ArmPlan*> base;
  const ArmPlan* stamp = nullptr;
  for (const ArmPlan& arm : arms) {
    if (!is_in_round(arm, options)) continue;
    if (arm.kind == "stamp") stamp = &arm;
    if (!arm.is_replay() || options.is_tight) {
      base.push_back(&arm);
      continue;
    }
    const auto [found, is_new] = turn_of_scope.try_emplace(arm.scope, turns.size());
    if (is_new) turns.emplace_back();
    turns[found->second].push_back(&arm);
  }
  for (auto& turn : turns) {
    if (stamp != nullptr) turn.push_back(stamp);
  }
  const bool has_own_turn = turns.empty() || base.size() > (stamp == nullptr ? 0U : 1U);
  if (has_own_turn) turns.push_back(base);
  return turns;
}

// The same on both sides, or the engines would not hold at the same steps.
void share(ScheduleEntry& a, ScheduleEntry& b, const std::array<double, 2>& step_ns) {
  // Two engines changing places every 60 ms told their ratio with a fifth of the error of every second; a
  // change costs a step of warming up.
  constexpr double kBurstNs = 1e8;
  const double burst_ns = std::max(a.cost_ratio * step_ns[0], b.cost_ratio * step_ns[1]);
  a.burst_steps = b.burst_steps = times_within(kBurstNs, burst_ns);
  // The fewer: of engines at 1.1 and 0.2 s a pass the slow one would be held up by what fits into the other's
  // turn.
  a.passes = b.passes = std::min(a.passes, b.passes);
}

}  // namespace

nlohmann::json to_json(const std::vector<ScheduleEntry>& schedule) {
  nlohmann::json out = nlohmann::json::array();
  for (const ScheduleEntry& entry : schedule) {
    out.push_back({{"arms", entry.arms},
                   {"passes", entry.passes},
                   {"verify", entry.is_verify},
                   {"warm_up_steps", entry.warm_up_steps},
                   {"burst_steps", entry.burst_steps}});
  }
  return out;
}

std::vector<ExpectedBlock> expected_blocks(const std::vector<ScheduleEntry>& schedule) {
  std::vector<ExpectedBlock> blocks;
  for (size_t i = 0; i < schedule.size(); ++i) {
    for (const std::string& arm : schedule[i].arms)
      blocks.push_back({arm, schedule[i].passes, schedule[i].is_verify, i});
  }
  return blocks;
}

size_t expected_holds(const std::vector<ScheduleEntry>& schedule, int steps) {
  int holds = 0;
  for (const ScheduleEntry& entry : schedule) {
    if (!entry.is_verify && entry.burst_steps > 0) holds += (entry.passes * steps - 1) / entry.burst_steps;
  }
  return static_cast<size_t>(holds);
}

std::vector<Stint> round_of(const std::vector<ArmPlan>& arms, const RoundOptions& options, Random& random) {
  // Long enough for its warm-ups not to matter, but what else is to be measured must have its turn soon.
  constexpr double kTurnNs = 1e9;
  constexpr int kStepsOfTurn = 16;
  constexpr double kWarmUpNs = 1.5e7;
  constexpr int kFewestPriceSteps = 3;
  const double step_ns = options.pass_ns / options.steps;
  const bool is_long = step_ns > kLongStepNs;
  std::vector<Stint> round;
  for (const std::vector<const ArmPlan*>& turn : arms_by_turn(arms, options)) {
    ScheduleEntry entry{{"baseline"}, 1, false};
    entry.cost_ratio = 1;
    for (const ArmPlan* arm : turn) {
      entry.arms.push_back(arm->id);
      entry.cost_ratio += arm->cost_ratio;
      if (arm->is_replay()) entry.scope = arm->scope;
    }
    random.shuffle(entry.arms);
    entry.passes = options.is_tight ? 1
                                    : std::min(times_within(kTurnNs, entry.cost_ratio * options.pass_ns),
                                               (kStepsOfTurn + options.steps - 1) / options.steps);
    const bool has_price = std::any_of(turn.begin(), turn.end(), is_price);
    // Measured once in a launch group, and the first one decides what is replayed: one disturbed step of a
    // few would move it.
    if (has_price && !options.is_tight && !is_long)
      entry.passes = std::max(entry.passes, (kFewestPriceSteps + options.steps - 1) / options.steps);
    entry.warm_up_steps = is_long ? 0 : times_within(kWarmUpNs, step_ns);
    round.push_back({std::move(entry)});
  }
  random.shuffle(round);
  return round;
}

std::vector<JointStint> joint_round(std::array<std::vector<Stint>, 2> rounds,
                                    const std::array<double, 2>& step_ns) {
  std::vector<JointStint> joint;
  std::vector<Stint>& others = rounds[1];
  for (Stint& own : rounds[0]) {
    const auto other = std::find_if(others.begin(), others.end(), [&](const Stint& stint) {
      return stint.front().scope == own.front().scope;
    });
    JointStint& both = joint.emplace_back();
    both.of_side[0] = std::move(own);
    if (other == others.end()) continue;
    both.of_side[1] = std::move(*other);
    others.erase(other);
    ScheduleEntry& a = both.of_side[0].front();
    ScheduleEntry& b = both.of_side[1].front();
    both.is_shared = true;
    share(a, b, step_ns);
  }
  for (Stint& other : others) joint.push_back({{Stint{}, std::move(other)}, false});
  return joint;
}

double round_cost_ns(const std::vector<ArmPlan>& arms, const RoundOptions& options) {
  std::map<std::string, double> ratios{{"baseline", 1.0}};
  for (const ArmPlan& arm : arms) ratios[arm.id] = arm.cost_ratio;
  Random order(1);  // a round costs the same in any order
  double passes = 0;
  for (const Stint& stint : round_of(arms, options, order)) {
    for (const ExpectedBlock& block : expected_blocks(stint)) passes += block.passes * ratios.at(block.arm);
  }
  return passes * options.pass_ns;
}

std::vector<ScheduleEntry> verify_of(const std::vector<ArmPlan>& arms) {
  ScheduleEntry entry{{"baseline"}, 1, true};
  for (const ArmPlan& arm : arms) {
    if (arm.kind != "baseline") entry.arms.push_back(arm.id);
  }
  return {entry};
}

SessionPlan plan_groups(const GroupCost& cost, double time_left_ns, int max_groups) {
  SessionPlan plan;
  const double tight_ns = 3 * (cost.fixed_ns + cost.rounds_ns) + cost.verify_ns;
  const double loose_ns = 3 * (cost.fixed_ns + cost.rounds_ns * 1.5) + cost.verify_ns;
  plan.is_tight = loose_ns > time_left_ns;
  plan.minimum_ns = plan.is_tight ? tight_ns : loose_ns;
  // Three groups are worth a seventh of overtime: two would leave every interval empty.
  plan.fits = tight_ns <= 1.15 * time_left_ns;
  if (!plan.fits) {
    const double group_ns = std::max(cost.fixed_ns + cost.rounds_ns + cost.verify_ns / 3, 1.0);
    plan.groups = static_cast<int>(std::clamp(std::floor(time_left_ns / group_ns), 1.0, 2.0));
  } else if (!plan.is_tight) {
    // Intervals come from groups: t is 4.3 with three and 2.6 with six. The rest of the time is for replays.
    constexpr double kGroupsTimeRatio = 0.3;
    const double affordable = std::floor(kGroupsTimeRatio * time_left_ns / std::max(loose_ns / 3, 1.0));
    plan.groups = static_cast<int>(std::clamp(affordable, 3.0, static_cast<double>(max_groups)));
  }
  return plan;
}

std::vector<size_t> choose_replays(const std::vector<ReplayCandidate>& candidates, size_t workloads,
                                   double budget_ns) {
  std::vector<size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t x, size_t y) { return candidates[x].share_ratio > candidates[y].share_ratio; });
  std::vector<double> left_ns(workloads, budget_ns / static_cast<double>(std::max<size_t>(workloads, 1)));
  std::vector<size_t> chosen;
  for (const size_t i : order) {
    const ReplayCandidate& candidate = candidates[i];
    if (candidate.round_ns > left_ns[candidate.workload]) continue;
    left_ns[candidate.workload] -= candidate.round_ns;
    chosen.push_back(i);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace opledger::session
