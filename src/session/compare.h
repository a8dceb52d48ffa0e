// Measures two engines against each other, by launch groups, blocks and rounds, into a record. It decides
// what is measured, in what order and for how long; what the figures mean is the analysis's to say, from the
// record alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/ledger/analyse.h"
#include "core/record/record.h"
#include "core/scopes/scopes.h"
#include "platform/clock.h"
#include "platform/interrupt.h"
#include "session/plant.h"
#include "session/progress.h"
#include "session/schedule.h"
#include "session/workloads.h"

namespace opledger::session {

struct CompareOptions {
  std::string spec_a, spec_b;
  WorkloadRequest workloads;
  std::map<std::string, std::string> flags;  ///< the command line's, without dash; m, t, b, ub among them
  std::optional<std::string> prompt_path;    ///< text to run on instead of seeded ids
  core::RowKind rows = core::RowKind::kCategory;
  double budget_s = 180;
  std::optional<double> precision_ratio;  ///< for the record: `is_enough` sees to it
  std::optional<std::string> record_path;
  std::vector<std::string> command;  ///< argv, for the record
  std::string version;
  uint64_t seed = 1;
  std::string log_folder;  ///< of the engines' logs
  std::string lock_path;   ///< of the machine's measurement lock
  int64_t engine_limit_ns = 600'000'000'000;
  size_t max_message_bytes = size_t{256} << 20;  ///< of an engine's line: beyond it is a flood
  /// Rounds of one workload, side and launch group at most: beyond them nothing is learned, whatever the
  /// budget.
  int max_rounds = 40;
  int max_groups = kMostGroups;  ///< at least three
  /// Of the working-set probe, which looks for the knee; 0: it does not run, and the knee is unknown.
  int64_t largest_probe_bytes = int64_t{256} << 20;
  /// Called once, with the record so far, when three launch groups tell something and half of the time is
  /// gone (or 100 s): whoever waits sees a first ledger. Not where the rest takes less than 20 s.
  std::function<void(const std::string& record_text)> show_so_far;
  /// Baselines alone: no rows and no clocks, so many short launch groups. `max_groups` are planned.
  bool totals_only = false;
  /// `max_groups` launch groups, whatever the budget: for who knows what is to be measured.
  bool has_fixed_groups = false;
  /// Only these rows are replayed; empty: all that the budget allows.
  std::optional<std::set<std::string>> replayed_rows;
  /// Side b does this in vain. Side a has the same nodes, which spin 0 ns: what a node costs is no part of
  /// the work. Bad input when an engine lacks the capability or a workload the row.
  std::optional<PlantedWork> planted;
  /// A fault of the method that side b plants (one of its capabilities.faults); empty: none.
  std::string fault;
  /// Asked with the record so far after each launch group; true ends the session.
  std::function<bool(const std::string& record_text)> is_enough;
  /// Gives the rules of an engine family.
  std::function<Result<std::shared_ptr<const core::RuleSet>>(const std::string& family)> rules_of;
};

struct CompareOutcome {
  std::string record_text;                 ///< every line of the record
  std::optional<std::string> record_path;  ///< where it lies: FILE.part when FILE is an older record, kept
  std::string end_reason;                  ///< complete, budget, interrupted, failed
  std::optional<Error> error;              ///< why it failed, or that it was interrupted
};

/// Checks everything that can be checked before an engine starts (an Error then, and no record), then
/// measures. What fails later is in the outcome, with the record so far.
Result<CompareOutcome> run_compare(const CompareOptions& options, const platform::Clock& clock,
                                   const platform::Interrupt& interrupt, Progress& progress);

}  // namespace opledger::session
