// Which rows are replayed, and with whose weights: decided from what the first launch group's stamps say.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <utility>

#include "session/compare_session.h"

namespace opledger::session {
namespace {

/// A little less than `clocks agree` allows between a copy and its original: 0.05.
constexpr double kBracketRatio = 0.04;
/// One turn tells c - o of lm_head to 3% or 4% only.
constexpr int kBracketGroups = 2;
/// Brackets explain rows; they may not eat the time that measures them.
constexpr double kBracketTimeRatio = 0.3;

/// Launch groups that are kept whatever could be replayed instead.
constexpr int kFewestWithReplays = 4;

double larger_share(const std::array<ScopeShare, 2>& shares) {
  return std::max(shares[0].share_ratio, shares[1].share_ratio);
}

}  // namespace

/// What could be replayed, each with its arms for either side.
struct CompareSession::Candidates {
  std::vector<ReplayCandidate> list;
  std::vector<std::array<std::vector<ArmPlan>, 2>> arms;
};

double CompareSession::added_time_ns(const Side& side, size_t w, std::vector<ArmPlan> arms) const {
  const SideWorkload& known = side.workloads[w];
  // A turn of their own comes with a stamp beside them.
  std::copy_if(known.arms.begin(), known.arms.end(), std::back_inserter(arms),
               [](const ArmPlan& arm) { return arm.kind == "stamp"; });
  return round_cost_ns(arms, round_options(side, w)) * known.cost_ratio;
}

void CompareSession::add_candidate(size_t w, const std::string& scope, double share_ratio,
                                   std::array<std::vector<ArmPlan>, 2> arms, Candidates& found) const {
  ReplayCandidate candidate{w, scope, share_ratio, 0};
  for (size_t s = 0; s < sides_.size(); ++s) {
    if (!arms[s].empty()) candidate.round_ns += added_time_ns(sides_[s], w, arms[s]);
  }
  found.list.push_back(std::move(candidate));
  found.arms.push_back(std::move(arms));
}

CompareSession::Shares CompareSession::shares_of(size_t w) const {
  Shares shares;
  for (size_t s = 0; s < sides_.size(); ++s) {
    const SideWorkload& known = sides_[s].workloads[w];
    const auto blocks_of = [&](const char* arm) {
      const auto blocks = known.timed_blocks.find(arm);
      return blocks == known.timed_blocks.end() ? std::vector<nlohmann::json>{} : blocks->second;
    };
    for (ScopeShare& share :
         scope_shares(known.graph, known.unit_scope, scope_names_, blocks_of("stamp"), blocks_of("price"))) {
      if (!options_.replayed_rows || options_.replayed_rows->count(share.scope) > 0)
        shares[share.scope][s] = std::move(share);
    }
  }
  return shares;
}

void CompareSession::add_candidates(size_t w, Candidates& found) const {
  std::array<std::vector<ScopeShare>, 2> small;
  double small_ratio = 0;
  for (const auto& [scope, of_sides] : shares_of(w)) {
    std::array<std::vector<ArmPlan>, 2> arms;
    const bool is_small = larger_share(of_sides) <= kReplayShareRatio;
    if (is_small) small_ratio += larger_share(of_sides);
    for (size_t s = 0; s < sides_.size(); ++s) {
      if (of_sides[s].units.empty()) continue;
      if (is_small) {
        small[s].push_back(of_sides[s]);
      } else {
        arms[s] =
            replay_arms(of_sides[s], sides_[s].arm_kinds, sides_[s].layers(), sides_[s].layer_interval());
      }
    }
    if (!is_small) add_candidate(w, scope, larger_share(of_sides), std::move(arms), found);
  }
  std::array<std::vector<ArmPlan>, 2> arms;
  for (size_t s = 0; s < sides_.size(); ++s) {
    if (auto arm =
            small_rows_arm(small[s], sides_[s].arm_kinds, sides_[s].layers(), sides_[s].layer_interval()))
      arms[s].push_back(std::move(*arm));
  }
  if (!arms[0].empty() || !arms[1].empty())
    add_candidate(w, core::kSmallRows, small_ratio, std::move(arms), found);
}

void CompareSession::take(const Candidates& found, const std::vector<size_t>& chosen) {
  for (size_t i = 0; i < found.list.size(); ++i) {
    const ReplayCandidate& candidate = found.list[i];
    if (!std::binary_search(chosen.begin(), chosen.end(), i)) {
      const bool is_shared = candidate.scope == core::kSmallRows;
      const std::string& workload = workloads_[candidate.workload].facts.id;
      not_run_.push_back(
          {fmt::format("replay of {} in {}", is_shared ? "the small rows" : candidate.scope, workload),
           workload});
      continue;
    }
    for (size_t s = 0; s < sides_.size(); ++s) {
      std::vector<ArmPlan>& known = sides_[s].workloads[candidate.workload].arms;
      known.insert(known.end(), found.arms[i][s].begin(), found.arms[i][s].end());
    }
  }
}

std::vector<size_t> CompareSession::affordable_replays(const std::vector<ReplayCandidate>& candidates,
                                                       double base_ns) const {
  const double groups_left = plan_.groups - group_ + (is_resident_ ? 1 : 0);
  const double free_ns = left_ns() - base_ns * (plan_.groups - group_);
  // Every chosen replay is run once per group, and once more to see that it keeps the result.
  return choose_replays(candidates, workloads_.size(), std::max(free_ns, 0.0) / (groups_left + 0.6));
}

void CompareSession::choose() {
  has_chosen_replays_ = true;
  double base_ns = sides_[0].launch_ns + sides_[1].launch_ns;
  Candidates found;
  for (size_t w = 0; w < workloads_.size(); ++w) {
    add_candidates(w, found);
    for (const Side& side : sides_) base_ns += first_round_time_ns(side, w);
  }
  // Fewer launch groups before a row goes without its second clock: t is 2.4 for eight, 3.2 for four.
  const int fewest = std::min(plan_.groups, group_ + kFewestWithReplays - 1);
  std::vector<size_t> chosen = affordable_replays(found.list, base_ns);
  while (chosen.size() < found.list.size() && plan_.groups > fewest) {
    --plan_.groups;
    chosen = affordable_replays(found.list, base_ns);
  }
  take(found, chosen);
  if (plan_.is_tight || !not_run_.empty()) return;
  double chosen_ns = 0;
  for (const size_t i : chosen) chosen_ns += found.list[i].round_ns;
  // Time to spare goes to more launch groups, as intervals of rows come from groups; but two rounds of each,
  // since what the clocks say is compared turn by turn.
  const double more = left_ns() / std::max(1.0, base_ns + 2 * chosen_ns);
  plan_.groups =
      std::clamp(group_ + static_cast<int>(std::min(more, 100.0)), plan_.groups, options_.max_groups);
}

std::vector<ArmPlan> CompareSession::missing_brackets(Side& side, size_t w) const {
  SideWorkload& known = side.workloads[w];
  std::vector<ArmPlan> twins;
  for (const ArmPlan& arm : known.arms) {
    if (arm.kind != "stamped_replay" || arm.scope == core::kSmallRows || arm.is_twin) continue;
    // Of several copies the later ones may differ from the original for being later.
    const bool has_single = std::any_of(known.arms.begin(), known.arms.end(), [&](const ArmPlan& other) {
      return other.kind == arm.kind && other.scope == arm.scope && other.copies == 1;
    });
    if (has_single && arm.copies != 1) continue;
    const std::optional<double> excess = copy_excess_ratio(known.graph, arm, known.timed_blocks);
    if (!excess || std::abs(*excess) <= kBracketRatio) continue;
    if (++known.far_copies[arm.id] < kBracketGroups) continue;
    std::optional<ArmPlan> twin = bracket_twin(known.graph, arm);
    const auto is_twin = [&](const ArmPlan& other) { return other.id == twin->id; };
    if (twin && std::none_of(known.arms.begin(), known.arms.end(), is_twin))
      twins.push_back(std::move(*twin));
  }
  return twins;
}

void CompareSession::add_brackets() {
  double free_ns = kBracketTimeRatio * left_ns() / std::max(1, plan_.groups - group_);
  for (Side& side : sides_) {
    for (size_t w = 0; w < workloads_.size() && side.can_give("shadow"); ++w) {
      for (ArmPlan& twin : missing_brackets(side, w)) {
        const double cost_ns = added_time_ns(side, w, {twin});
        if (cost_ns > free_ns) continue;
        free_ns -= cost_ns;
        side.workloads[w].arms.push_back(std::move(twin));
      }
    }
  }
}

}  // namespace opledger::session
