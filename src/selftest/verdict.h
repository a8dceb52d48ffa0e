// What a session in which something was planted must show, judged from its ledger. Pure: the same record
// gives the same verdict.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/ledger/ledger.h"
#include "core/record/record.h"

namespace opledger::selftest {

/// What planted work really was, by the engines' own counts. Per token (prefill: per pass).
struct Truth {
  double ms = 0;          ///< what side b spun more than side a
  double spins = 0;       ///< of side b
  double spin_ns = 0;     ///< mean of those that were not preempted
  double late_ratio = 0;  ///< share of spins that were
};

/// Of the record's first workload. Empty when no timed baseline of side b counts spins.
std::optional<Truth> truth_of(const core::Record& record);

/// The size may be wrong by this share of what was planted beyond the row's own interval.
inline constexpr double kSizeToleranceRatio = 0.10;

/// How a planted row came out. Figures are b - a in ms per token (prefill: per pass).
struct RowVerdict {
  std::string row;
  std::optional<Truth> truth;  ///< empty: the engine counted nothing
  core::Measured gap;
  std::optional<double> copies_ms;  ///< what copies of the row cost more; empty: not replayed on both sides
  bool is_found = false;            ///< the row is real and slower
  bool holds_size = false;          ///< the truth lies inside the interval, or within the tolerance of it
  /// Rows called real that nothing was planted in. Those smaller than the tolerance's share of the truth are
  /// left out: the intervals of rows hold their truth in 95 of 100 cases, and a ledger has ten rows.
  std::vector<std::string> wrong_rows;

  [[nodiscard]] bool passed() const { return is_found && holds_size && wrong_rows.empty(); }
  /// "found", or what is wrong.
  [[nodiscard]] std::string text() const;
};

RowVerdict judge_row(const core::WorkloadLedger& ledger, const std::string& row,
                     const std::optional<Truth>& truth);

/// A fault of the method, and the checks of which one must notice it.
struct Fault {
  std::string name;   ///< the protocol's; `unsorted_node` is planted in the rules
  std::string title;  ///< for people
  std::vector<std::string> checks;
  bool needs_replays = false;  ///< of the largest row, several rounds of them
};

/// All that are known, in the order in which they are planted.
const std::vector<Fault>& known_faults();

/// The first check among `names` that failed for this side and showed something; empty when none did. A check
/// that failed because too little was measured has noticed nothing.
std::optional<core::Check> fired_check(const core::WorkloadLedger& ledger, core::Side side,
                                       const std::vector<std::string>& names);

struct FaultVerdict {
  std::string fault, title;
  enum class Outcome { kFired, kQuiet, kFalseAlarm, kNotRun };
  Outcome outcome = Outcome::kNotRun;
  std::string check;  ///< the one that fired, or those that should have
  std::string text;   ///< its text, or why nothing ran
};

/// Side b has the fault, side a has not: there the same checks must be quiet.
FaultVerdict judge_fault(const Fault& fault, const core::WorkloadLedger& ledger);

/// "fired", "quiet", "false alarm" or "not run".
const char* outcome_name(FaultVerdict::Outcome outcome);

}  // namespace opledger::selftest
