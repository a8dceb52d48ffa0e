// Launch groups: one process of each engine from start to end, in which blocks alternate A B B A.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
#include <utility>

#include "core/record/write.h"
#include "core/stats/interval.h"
#include "platform/machine.h"
#include "session/compare_session.h"

namespace opledger::session {
namespace {

using nlohmann::json;

/// Passes longer than this are spared where time is short.
constexpr double kDearPassNs = 5e8;

}  // namespace

RoundOptions CompareSession::round_options(const Side& side, size_t w) const {
  RoundOptions options;
  options.is_tight = plan_.is_tight && side.workloads[w].pass_ns > kDearPassNs;
  options.pass_ns = side.workloads[w].pass_ns;
  options.steps = workloads_[w].steps();
  options.with_price = side.workloads[w].rounds == 0;
  const bool is_dear = side.workloads[w].pass_ns > kDearPassNs;
  options.with_empty = options.with_price && !plan_.is_tight && (group_ == 1 || !is_dear);
  return options;
}

double CompareSession::round_time_ns(const Side& side, size_t w) const {
  return round_cost_ns(side.workloads[w].arms, round_options(side, w)) * side.workloads[w].cost_ratio;
}

double CompareSession::first_round_time_ns(const Side& side, size_t w) const {
  RoundOptions options = round_options(side, w);
  options.with_price = true;
  options.with_empty = !plan_.is_tight && side.workloads[w].pass_ns <= kDearPassNs;
  return round_cost_ns(side.workloads[w].arms, options) * side.workloads[w].cost_ratio;
}

std::vector<ScheduleEntry> CompareSession::verify_schedule(const Side& side, size_t w) const {
  const SideWorkload& known = side.workloads[w];
  const bool is_split = plan_.is_tight || known.pass_ns > kDearPassNs;
  std::vector<ArmPlan> arms;
  for (const ArmPlan& arm : known.arms) {
    // An arm is the same graph in every group, and every timed pass tells its logits: each is verified once,
    // a replay when it is chosen.
    if (arm.copies || known.checked_arms.count(arm.id) > 0) continue;
    // Where time is short or passes are dear, not all in one group. Both can change from group to group.
    if (arm.kind == "empty" && plan_.is_tight) continue;
    if (arm.kind == "price" && is_split && group_ < std::min(2, plan_.groups)) continue;
    arms.push_back(arm);
  }
  return arms.empty() ? std::vector<ScheduleEntry>{} : verify_of(arms);
}

Status CompareSession::plan() {
  GroupCost cost;
  for (const Side& side : sides_) {
    cost.fixed_ns += side.launch_ns;
    for (size_t w = 0; w < workloads_.size(); ++w) {
      const double pass_ns = side.workloads[w].pass_ns;
      RoundOptions tight;
      tight.is_tight = pass_ns > kDearPassNs;
      tight.with_price = true;
      tight.pass_ns = pass_ns;
      tight.steps = workloads_[w].steps();
      cost.fixed_ns += pass_ns;
      cost.rounds_ns += round_cost_ns(side.workloads[w].arms, tight);
      cost.verify_ns += pass_ns * 3;  // baseline, price, stamp: a tight round has no empty nodes
    }
  }
  plan_ = plan_groups(cost, left_ns(), options_.max_groups);
  if (options_.totals_only || options_.has_fixed_groups)
    plan_ = SessionPlan{options_.max_groups, false, plan_.minimum_ns, true};
  const std::optional<int64_t> available = platform::available_memory_bytes();
  int64_t needed_bytes = 0;
  for (const Side& side : sides_) {
    needed_bytes += side.memory_bytes.value_or(static_cast<int64_t>(side.model.file_bytes) * 3 / 2);
  }
  is_resident_ = !available || needed_bytes <= *available;
  progress_.say(
      fmt::format("plan: {} launch group{} of both engines{}, at least {} of the {} left", plan_.groups,
                  plan_.groups == 1 ? "" : "s", is_resident_ ? "" : ", one in memory at a time",
                  duration_text(plan_.minimum_ns * 1e-9), duration_text(std::max(left_ns(), 0.0) * 1e-9)));
  if (!is_resident_) {
    if (Status status =
            note("note", nullptr, "both engines do not fit in memory together: processes alternate");
        !status) {
      return status;
    }
  }
  progress_.start_countdown(end_ns_);
  if (plan_.fits) return {};
  return note(
      "budget", nullptr,
      fmt::format(
          "three launch groups need about {}: only {} planned, so intervals stay empty; give a longer "
          "--budget",
          duration_text(plan_.minimum_ns * 1e-9), plan_.groups));
}

Status CompareSession::launch(Side& side) {
  progress_.show(fmt::format("group {} of {}: starting {}", group_, plan_.groups, side.program.name));
  const int64_t started_ns = clock_.now_ns();
  if (Status status = start_and_load(side, context_tokens_, context()); !status) return status;
  for (size_t w = 0; w < workloads_.size(); ++w) {
    SideWorkload& known = side.workloads[w];
    Result<json> reply = ask_graph(side, workloads_[w], false, known.given_units, known.planted);
    if (!reply) return reply.error();
    Result<core::WorkloadGraph> graph = core::parse_workload_graph(reply->dump());
    if (!graph) return Error::failure(fmt::format("{}: graph: {}", side.program.name, graph.error().message));
    if (Status same = check_same_graph(side.program.name, known.graph, *graph); !same) return same;
    known.rounds = 0;
    known.timed_blocks.clear();
  }
  side.launch_ns = static_cast<double>(clock_.now_ns() - started_ns);
  side.engine->pause();
  return {};
}

Status CompareSession::close(Side& side) {
  if (!side.engine) return {};
  Status status = side.engine->shutdown();
  side.engine.reset();
  return status;
}

Status CompareSession::verify(Side& side, size_t w) {
  const std::vector<ScheduleEntry> schedule = verify_schedule(side, w);
  if (schedule.empty()) return {};
  if (Status status = stint(side, w, schedule); !status) return status;
  const std::vector<std::string>& arms = schedule.front().arms;
  side.workloads[w].checked_arms.insert(arms.begin(), arms.end());
  return {};
}

Status CompareSession::round(const std::vector<Side*>& sides, size_t w) {
  std::array<std::vector<Stint>, 2> rounds;
  std::array<double, 2> step_ns{};
  for (size_t s = 0; s < sides.size(); ++s) {
    const SideWorkload& known = sides[s]->workloads[w];
    rounds[s] = round_of(known.arms, round_options(*sides[s], w), random_);
    step_ns[s] = known.pass_ns / workloads_[w].steps();
  }
  std::array<size_t, 2> order{0, 1};
  // A B, B A, A B: neither side is always the one that comes later.
  for (const JointStint& joint : joint_round(std::move(rounds), step_ns)) {
    const auto [first, second] = order;
    std::reverse(order.begin(), order.end());
    if (joint.is_shared) {
      const auto with_stint = [&](size_t s) { return std::pair(sides[s], &joint.of_side[s]); };
      if (Status status = shared_stint({with_stint(first), with_stint(second)}, w); !status) return status;
      continue;
    }
    for (const size_t s : {first, second}) {
      if (joint.of_side[s].empty()) continue;
      if (Status status = stint(*sides[s], w, joint.of_side[s]); !status) return status;
    }
  }
  for (Side* side : sides) ++side->workloads[w].rounds;
  show_so_far();
  progress_.show(fmt::format("group {} of {}: {}", group_, plan_.groups, workloads_[w].facts.id));
  return {};
}

// Both engines are stopped: looking takes time of the budget, and none of a measurement's.
void CompareSession::show_so_far() {
  constexpr double kLatestNs = 100e9;
  constexpr double kLeastLeftNs = 20e9;
  if (has_shown_ledger_ || !options_.show_so_far || group_ < core::kFewestForInterval) return;
  const auto gone_ns = static_cast<double>(clock_.now_ns() - started_ns_);
  const bool is_time = gone_ns >= std::min(kLatestNs, 0.5e9 * options_.budget_s);
  if (!is_time || left_ns() < kLeastLeftNs) return;
  has_shown_ledger_ = true;
  progress_.clear();
  options_.show_so_far(log_.text());
}

bool CompareSession::has_room_for_round(const std::vector<Side*>& sides, size_t w, double time_ns) const {
  double cost_ns = 0;
  for (const Side* side : sides) {
    if (side->workloads[w].rounds >= options_.max_rounds) return false;
    cost_ns += round_time_ns(*side, w);
  }
  return cost_ns <= time_ns;
}

bool CompareSession::has_replays(const std::vector<Side*>& sides, size_t w) {
  return std::any_of(sides.begin(), sides.end(), [w](const Side* side) {
    const std::vector<ArmPlan>& arms = side->workloads[w].arms;
    return std::any_of(arms.begin(), arms.end(), [](const ArmPlan& arm) { return arm.is_replay(); });
  });
}

Status CompareSession::rounds(std::vector<Side*> sides, size_t w, int64_t end_ns) {
  while (true) {
    if (!has_room_for_round(sides, w, static_cast<double>(end_ns - clock_.now_ns()))) return {};
    if (Status status = round(sides, w); !status) return status;
    std::reverse(sides.begin(), sides.end());
  }
}

bool CompareSession::is_overdue() const {
  // A group once begun is worth finishing, but not at any price: a machine may be far slower than it was when
  // the plan was made.
  return left_ns() < -0.25e9 * options_.budget_s;
}

Status CompareSession::prepare_known(Side& side, size_t w) {
  return has_chosen_replays_ ? check_replays(side, w) : prepare(side, w);
}

Status CompareSession::begin_workload(const std::vector<Side*>& sides, size_t w) {
  for (Side* side : sides) {
    if (Status status = prepare_known(*side, w); !status) return status;
    if (Status status = verify(*side, w); !status) return status;
  }
  return round(sides, w);
}

Status CompareSession::pilot(const std::vector<Side*>& sides) {
  for (size_t w = 0; w < workloads_.size() && (w == 0 || !is_overdue()); ++w) {
    if (Status status = begin_workload(sides, w); !status) return status;
  }
  choose();
  return {};
}

Status CompareSession::workloads(const std::vector<Side*>& sides, bool is_begun, int64_t end_ns) {
  for (size_t i = 0; i < workloads_.size() && (i == 0 || !is_overdue()); ++i) {
    const size_t w = (i + static_cast<size_t>(group_)) % workloads_.size();
    progress_.show(fmt::format("group {} of {}: {}", group_, plan_.groups, workloads_[w].facts.id));
    if (!is_begun) {
      if (Status status = begin_workload(sides, w); !status) return status;
    }
    for (Side* side : sides) {
      if (!is_begun) break;
      if (Status status = check_replays(*side, w); !status) return status;
    }
    const auto workloads_left = static_cast<int64_t>(workloads_.size() - i);
    const std::vector<Side*> reversed(sides.rbegin(), sides.rend());
    // The choice of replays counts on a turn of each in the first group too, though choosing has taken that
    // group's time.
    if (is_begun && has_replays(sides, w) &&
        has_room_for_round(sides, w, left_ns() / static_cast<double>(plan_.groups))) {
      if (Status status = round(reversed, w); !status) return status;
    }
    const int64_t now_ns = clock_.now_ns();
    if (Status status = rounds(reversed, w, now_ns + (end_ns - now_ns) / workloads_left); !status)
      return status;
  }
  return {};
}

Status CompareSession::run_resident_group(int64_t end_ns) {
  std::vector<Side*> order{&sides_[0], &sides_[1]};
  if (group_ % 2 == 0) std::reverse(order.begin(), order.end());
  for (Side* side : order) {
    if (Status status = launch(*side); !status) return status;
  }
  const bool is_pilot = !has_chosen_replays_;
  if (is_pilot) {
    if (Status status = pilot(order); !status) return status;
  }
  if (Status status = workloads(order, is_pilot, end_ns); !status) return status;
  for (Side* side : order) {
    if (Status status = close(*side); !status) return status;
  }
  return {};
}

Status CompareSession::run_alternating_group(int64_t end_ns) {
  std::vector<Side*> order{&sides_[0], &sides_[1]};
  if (group_ % 2 == 0) std::reverse(order.begin(), order.end());
  for (size_t s = 0; s < order.size(); ++s) {
    const int64_t now_ns = clock_.now_ns();
    const int64_t side_end_ns = now_ns + (end_ns - now_ns) / static_cast<int64_t>(order.size() - s);
    if (Status status = launch(*order[s]); !status) return status;
    if (Status status = workloads({order[s]}, false, side_end_ns); !status) return status;
    if (Status status = close(*order[s]); !status) return status;
  }
  if (!has_chosen_replays_) choose();
  return {};
}

Status CompareSession::run_group(int group) {
  group_ = group;
  if (Status status = log_.append(core::group_line(group)); !status) return status;
  const int64_t now_ns = clock_.now_ns();
  int64_t end_ns = now_ns + std::max<int64_t>(end_ns_ - now_ns, 0) / (plan_.groups - group + 1);
  // Launches differ as well as passes do: as long for measuring as for launching.
  if (options_.totals_only)
    end_ns = now_ns + static_cast<int64_t>(2 * (sides_[0].launch_ns + sides_[1].launch_ns));
  return is_resident_ ? run_resident_group(end_ns) : run_alternating_group(end_ns);
}

}  // namespace opledger::session
