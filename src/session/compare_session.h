// The course of one comparison, step by step. Internal to the session: others call run_compare.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/record/record.h"
#include "platform/clock.h"
#include "platform/interrupt.h"
#include "session/compare.h"
#include "session/progress.h"
#include "session/random.h"
#include "session/record_log.h"
#include "session/schedule.h"
#include "session/side.h"
#include "session/workloads.h"

namespace opledger::session {

class CompareSession {
 public:
  /// All references must outlive it. `started_ns` is when the budget began to run.
  CompareSession(const CompareOptions& options, const platform::Clock& clock,
                 const platform::Interrupt& interrupt, Progress& progress, RecordLog& log,
                 std::array<Side, 2> sides, int64_t needed_tokens);

  /// Discovers, plans, measures. The text is the record's end reason. The record is complete but for its end
  /// line.
  Result<std::string> run();

 private:
  // Discovery: one launch of each engine, in which nothing is timed.
  Status write_facts();
  Status discover(Side& side, std::vector<std::vector<float>>& logits);
  Status make_ids(Side& side);
  Status describe(Side& side);
  Status describe_workload(Side& side, size_t w);
  Result<nlohmann::json> probe_graph(Side& side, const Workload& workload);
  Status take_logits(Side& side, std::vector<std::vector<float>>& logits);
  Status write_agreement(const std::array<std::vector<std::vector<float>>, 2>& logits);
  Status scope_all();
  /// Decides what later launches are to plant.
  Status plant_work();
  Status plant_work(Side& side, size_t w);

  // Launch groups.
  Status plan();
  /// As many as are planned and fit, until the caller has enough.
  Status run_groups();
  Status run_group(int group);
  /// Prepares the arms known so far; replays that are new are checked against the baseline's digests.
  Status prepare_known(Side& side, size_t w);
  /// Prepares and verifies a workload on each side and measures its first round.
  Status begin_workload(const std::vector<Side*>& sides, size_t w);
  /// One round of every workload says which rows are worth replaying.
  Status pilot(const std::vector<Side*>& sides);
  /// All workloads of a group, as many rounds of each as fit; once begun, only the chosen replays are checked
  /// first.
  Status workloads(const std::vector<Side*>& sides, bool is_begun, int64_t end_ns);
  Status run_resident_group(int64_t end_ns);
  Status run_alternating_group(int64_t end_ns);
  Status launch(Side& side);
  Status close(Side& side);
  Status verify(Side& side, size_t w);
  /// One round of every side: turns of the same scope together, other stints one after the other.
  Status round(const std::vector<Side*>& sides, size_t w);
  Status rounds(std::vector<Side*> sides, size_t w, int64_t end_ns);
  [[nodiscard]] bool has_room_for_round(const std::vector<Side*>& sides, size_t w, double time_ns) const;
  [[nodiscard]] static bool has_replays(const std::vector<Side*>& sides, size_t w);
  void show_so_far();
  [[nodiscard]] RoundOptions round_options(const Side& side, size_t w) const;
  [[nodiscard]] double round_time_ns(const Side& side, size_t w) const;
  /// Of a later launch group.
  [[nodiscard]] double first_round_time_ns(const Side& side, size_t w) const;
  [[nodiscard]] std::vector<ScheduleEntry> verify_schedule(const Side& side, size_t w) const;

  // Arms and blocks.
  Status prepare(Side& side, size_t w);
  Result<nlohmann::json> ask_prepare(Side& side, size_t w, const std::vector<ArmPlan>& arms);
  using Blocks = std::vector<nlohmann::json>;
  struct Measuring;
  Status take_block(Measuring& measuring, const nlohmann::json& block);
  Status begin(Measuring& measuring);
  /// Goes on, or begins, until the schedule is measured or the engine holds.
  Status advance(Measuring& measuring);
  /// Measures a schedule; blocks go to the record when `is_recorded`. Keeps pass and cost estimates up to
  /// date.
  Result<Blocks> measure(Side& side, size_t w, const std::vector<ScheduleEntry>& schedule, bool is_recorded);
  /// One stint of one side, the other stopped.
  Status stint(Side& side, size_t w, const Stint& schedule);
  /// One stint of both, which change places whenever an engine holds.
  Status shared_stint(const std::array<std::pair<Side*, const Stint*>, 2>& sides, size_t w);

  // Replays: chosen once, after the first group's pilot. Shadow weights join them where copies cost something
  // else than their originals.
  struct Candidates;
  /// What the budget did not allow.
  struct NotRun {
    std::string what;
    std::string workload;  ///< empty: of all
  };
  void choose();
  /// What fits the time left, given the plan's groups. `base_ns`: a launch group without replays.
  [[nodiscard]] std::vector<size_t> affordable_replays(const std::vector<ReplayCandidate>& candidates,
                                                       double base_ns) const;
  /// What the pilot's stamps say each scope costs on either side: those that may be replayed.
  using Shares = std::map<std::string, std::array<ScopeShare, 2>>;
  [[nodiscard]] Shares shares_of(size_t w) const;
  void add_candidates(size_t w, Candidates& found) const;
  void add_candidate(size_t w, const std::string& scope, double share_ratio,
                     std::array<std::vector<ArmPlan>, 2> arms, Candidates& found) const;
  void take(const Candidates& found, const std::vector<size_t>& chosen);
  void add_brackets();
  std::vector<ArmPlan> missing_brackets(Side& side, size_t w) const;
  /// What these arms add to a round.
  [[nodiscard]] double added_time_ns(const Side& side, size_t w, std::vector<ArmPlan> arms) const;
  Status check_replays(Side& side, size_t w);
  /// Excludes the units of an arm whose copies change the result.
  Status bisect(Side& side, size_t w, const std::string& arm_id, const nlohmann::json& baseline);
  /// Takes the excluded units out of all arms, and drops those of `broken` that lost none.
  Status mend_arms(Side& side, size_t w, const std::set<std::string>& broken);
  Status exclude(Side& side, size_t w, const std::vector<core::UnitName>& units, const std::string& reason);

  Status note(const char* kind, const Side* side, const std::string& text, const std::string& workload = "");
  [[nodiscard]] double left_ns() const;
  [[nodiscard]] bool is_overdue() const;
  [[nodiscard]] EngineContext context() const;

  const CompareOptions& options_;
  const platform::Clock& clock_;
  const platform::Interrupt& interrupt_;
  Progress& progress_;
  RecordLog& log_;
  std::array<Side, 2> sides_;
  int64_t needed_tokens_;
  int64_t started_ns_;
  int64_t end_ns_;
  int64_t context_tokens_ = 0;
  std::vector<int64_t> ids_;
  std::string token_source_;
  std::vector<Workload> workloads_;
  std::vector<std::string> scope_names_;
  Random random_;
  SessionPlan plan_;
  int group_ = 0;
  int64_t stint_ = 0;     ///< of the record's blocks
  int64_t turn_ = 0;      ///< likewise
  int64_t sequence_ = 0;  ///< likewise
  bool has_chosen_replays_ = false;
  bool has_shown_ledger_ = false;
  bool is_resident_ = true;
  std::vector<NotRun> not_run_;
};

}  // namespace opledger::session
