// The order of blocks in a round, and the plan of a session's time. Pure: costs in, schedules out.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "session/arms.h"
#include "session/random.h"

namespace opledger::session {

/// A turn: arms that alternate step by step (an untimed one: pass by pass). The engine answers with a block
/// of each, in their order.
struct ScheduleEntry {
  std::vector<std::string> arms;
  int passes = 1;
  bool is_verify = false;
  int warm_up_steps = 0;  ///< run first and forgotten: the engine was stopped until now
  int burst_steps = 0;    ///< the engine holds after so many; 0: never
  std::string scope{};    ///< what a turn tells of, its arms beside the base ones; not sent
  double cost_ratio = 0;  ///< of a pass of all arms, over a baseline's; not sent
};

nlohmann::json to_json(const std::vector<ScheduleEntry>& schedule);

/// A block that the engine owes for a schedule.
struct ExpectedBlock {
  std::string arm;
  int passes = 1;
  bool is_verify = false;
  size_t entry = 0;  ///< of the schedule
};

std::vector<ExpectedBlock> expected_blocks(const std::vector<ScheduleEntry>& schedule);

/// How often an engine holds in a schedule; `steps` of one pass.
size_t expected_holds(const std::vector<ScheduleEntry>& schedule, int steps);

struct RoundOptions {
  bool with_price = false;  ///< the first round of a launch group
  bool with_empty = false;
  /// No more passes than it takes: where a pass is dear and time is short.
  bool is_tight = false;
  double pass_ns = 1e6;  ///< of a baseline
  int steps = 1;         ///< decodes of one pass
};

/// A stint: what one engine measures at a stretch, or both while they change places every few steps.
using Stint = std::vector<ScheduleEntry>;

/// A round of `arms` (which hold a baseline), everything in random order. A stint is one turn: the arms of
/// one scope with a baseline and a stamp beside them.
std::vector<Stint> round_of(const std::vector<ArmPlan>& arms, const RoundOptions& options, Random& random);

/// One stint of each side; empty where a side has none left.
struct JointStint {
  std::array<Stint, 2> of_side;
  bool is_shared = false;  ///< the engines change places every few steps, else one comes after the other
};

/// Both sides' rounds, turns of the same scope together. `step_ns`: what one step of a baseline takes. Shared
/// turns have the same passes and bursts on both sides, so that each step has one of the other engine beside
/// it.
std::vector<JointStint> joint_round(std::array<std::vector<Stint>, 2> rounds,
                                    const std::array<double, 2>& step_ns);

/// What a round takes, in nanoseconds.
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
