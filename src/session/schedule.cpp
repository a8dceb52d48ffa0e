// Costs are estimates from passes already seen; nothing here reads a clock.
#include "session/schedule.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace opledger::session {
namespace {

constexpr double kBlockNs = 60e6;

bool is_in_round(const ArmPlan& arm, const RoundOptions& options) {
  if (arm.kind == "baseline") return false;
  if (arm.kind == "price") return options.with_price;
  if (arm.kind == "empty") return options.with_empty;
  return true;
}

/// Every row comes from the stamps, a replay tells of one: stamps are measured again for every three replays.
int times_in_round(const ArmPlan& arm, const std::vector<ArmPlan>& arms) {
  if (arm.kind != "stamp") return 1;
  const auto is_replay = [](const ArmPlan& other) { return other.copies.has_value(); };
  return 1 + static_cast<int>(std::count_if(arms.begin(), arms.end(), is_replay)) / 3;
}

}  // namespace

nlohmann::json to_json(const std::vector<ScheduleEntry>& schedule) {
  nlohmann::json out = nlohmann::json::array();
  for (const ScheduleEntry& entry : schedule) {
    out.push_back({{"arm", entry.arm}, {"passes", entry.passes}, {"verify", entry.is_verify}});
  }
  return out;
}

int passes_per_block(double pass_ns) {
  if (!(pass_ns > 0)) return 1;
  return static_cast<int>(std::clamp(std::ceil(kBlockNs / pass_ns), 1.0, 8.0));
}

std::vector<ScheduleEntry> round_of(const std::vector<ArmPlan>& arms, const RoundOptions& options,
                                    Random& random) {
  std::vector<const ArmPlan*> order;
  const ArmPlan* price = nullptr;
  for (const ArmPlan& arm : arms) {
    if (!is_in_round(arm, options)) continue;
    if (arm.kind == "price") {
      price = &arm;
    } else {
      order.insert(order.end(), static_cast<size_t>(times_in_round(arm, arms)), &arm);
    }
  }
  random.shuffle(order);
  if (price != nullptr) order.insert(order.begin(), price);
  const int passes = passes_per_block(options.pass_ns);
  std::vector<ScheduleEntry> round{{"baseline", passes, false}};
  for (const ArmPlan* arm : order) {
    round.push_back({arm->id, passes, false});
    if (!options.is_tight || arm == order.back()) round.push_back({"baseline", passes, false});
  }
  return round;
}

int arms_per_stint(double pass_ns) {
  constexpr double kStintNs = 1e9;
  const double blocks = kStintNs / std::max(pass_ns * passes_per_block(pass_ns), 1.0);
  return static_cast<int>(std::clamp((blocks - 1) / 2, 1.0, 8.0));
}

std::vector<Stint> stints_of(const std::vector<ScheduleEntry>& round, int arms) {
  std::vector<Stint> stints;
  Stint stint;
  int held = 0;
  for (size_t i = 0; i < round.size(); ++i) {
    stint.push_back(round[i]);
    if (round[i].arm != "baseline") {
      ++held;
    } else if (held >= arms && i + 1 < round.size()) {
      stints.push_back(std::move(stint));
      stint = {round[i]};
      held = 0;
    }
  }
  stints.push_back(std::move(stint));
  return stints;
}

double round_cost_ns(const std::vector<ArmPlan>& arms, const RoundOptions& options) {
  double ratio = 0;
  int count = 0;
  for (const ArmPlan& arm : arms) {
    if (!is_in_round(arm, options)) continue;
    const int times = times_in_round(arm, arms);
    ratio += arm.cost_ratio * times;
    count += times;
  }
  const int per_stint = arms_per_stint(options.pass_ns);
  const int stints = options.is_tight || count == 0 ? 1 : (count + per_stint - 1) / per_stint;
  // Every arm is followed by a baseline, and every stint begins with one more.
  ratio += options.is_tight && count > 0 ? 2.0 : count + stints;
  return ratio * options.pass_ns * passes_per_block(options.pass_ns);
}

std::vector<ScheduleEntry> verify_of(const std::vector<ArmPlan>& arms) {
  std::vector<ScheduleEntry> schedule{{"baseline", 1, true}};
  for (const ArmPlan& arm : arms) {
    if (arm.kind != "baseline") schedule.push_back({arm.id, 1, true});
  }
  return schedule;
}

SessionPlan plan_groups(const GroupCost& cost, double time_left_ns, int max_groups) {
  SessionPlan plan;
  const double tight_ns = 3 * (cost.fixed_ns + cost.rounds_ns) + cost.verify_ns;
  const double loose_ns = 3 * (cost.fixed_ns + cost.rounds_ns * 1.5 + cost.verify_ns);
  plan.is_tight = loose_ns > time_left_ns;
  plan.minimum_ns = plan.is_tight ? tight_ns : loose_ns;
  // Three groups are worth a seventh of overtime: two would leave every interval empty.
  plan.fits = tight_ns <= 1.15 * time_left_ns;
  if (!plan.fits) {
    const double group_ns = std::max(cost.fixed_ns + cost.rounds_ns + cost.verify_ns / 3, 1.0);
    plan.groups = static_cast<int>(std::clamp(std::floor(time_left_ns / group_ns), 1.0, 2.0));
  } else if (!plan.is_tight) {
    // Intervals come from groups: t is 4.3 with three and 2.6 with six. The rest of the time is for replays.
    constexpr double kGroupsTimeRatio = 0.7;
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
