// The order of blocks in a round, and the plan of a session's time. Pure: costs in, schedules out.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "session/arms.h"
#include "session/random.h"

namespace opledger::session {

struct ScheduleEntry {
  std::string arm;
  int passes = 1;
  bool is_verify = false;
};

nlohmann::json to_json(const std::vector<ScheduleEntry>& schedule);

/// Passes of one block: enough to last some 60 ms, at most 8.
int passes_per_block(double pass_ns);

struct RoundOptions {
  bool with_price = false;  ///< the first round of a launch group: the price comes before any other arm
  bool with_empty = false;
  /// Baselines only at both ends instead of between all arms: where a pass is dear and time is short.
  bool is_tight = false;
  double pass_ns = 1e6;  ///< of a baseline
};

/// A round of `arms` (which hold a baseline): baselines around every other arm, the others in random order.
std::vector<ScheduleEntry> round_of(const std::vector<ArmPlan>& arms, const RoundOptions& options,
                                    Random& random);

/// A stint: what one engine measures before the other takes its turn. It begins and ends with a baseline.
using Stint = std::vector<ScheduleEntry>;

/// Arms of one stint, so that it lasts about a second: a machine's speed drifts by tenths within ten seconds,
/// and what the two engines measure within one or two is compared at one speed.
int arms_per_stint(double pass_ns);

/// Cuts a round at its baselines into stints of at least `arms` other arms; the baseline at a cut is measured
/// in both.
std::vector<Stint> stints_of(const std::vector<ScheduleEntry>& round, int arms);

/// What a round takes, in nanoseconds, cut into stints.
double round_cost_ns(const std::vector<ArmPlan>& arms, const RoundOptions& options);

/// Untimed blocks: the baseline and then each of `arms` that is not the baseline.
std::vector<ScheduleEntry> verify_of(const std::vector<ArmPlan>& arms);

/// What a launch group needs at the least: both engines started, their graphs run, one round of the base
/// arms.
struct GroupCost {
  double fixed_ns = 0;   ///< starts, loads, graphs, preparation
  double rounds_ns = 0;  ///< one round of the base arms, all workloads, both sides
  double verify_ns = 0;  ///< one untimed pass of the base arms, all workloads, both sides
};

/// More launch groups would narrow an interval by less than the time they cost.
inline constexpr int kMostGroups = 8;

struct SessionPlan {
  int groups = 3;
  bool is_tight = false;  ///< no time to spare: tight rounds, each arm verified in one group only
  double minimum_ns = 0;  ///< what the plan needs at the least
  bool fits = true;       ///< that is within the time left
};

/// Three launch groups where they fit (intervals need three), fewer when there is not enough time, loose
/// rounds and up to `max_groups` when there is more.
SessionPlan plan_groups(const GroupCost& cost, double time_left_ns, int max_groups = kMostGroups);

/// Rows above this share of the pass get replays of their own. Analysis judges rows above 0.05 by their
/// increment: the margin is for shares that move after the pilot.
inline constexpr double kReplayShareRatio = 0.04;

/// Something that could be replayed, with what a round of its arms takes for both sides of one workload.
struct ReplayCandidate {
  size_t workload = 0;
  std::string scope;       ///< core::kSmallRows: all others together
  double share_ratio = 0;  ///< the larger of both sides'
  double round_ns = 0;
};

/// Which candidates to measure: largest shares first, as long as `budget_ns` (per launch group, split fairly
/// over `workloads`) lasts. Indices into `candidates`.
std::vector<size_t> choose_replays(const std::vector<ReplayCandidate>& candidates, size_t workloads,
                                   double budget_ns);

}  // namespace opledger::session
