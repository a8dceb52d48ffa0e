// The ledger: what one record says about the gap between two engines. Plain data in the shape of the
// published JSON (version 1): milliseconds per pass (decode: per token), gap = a - b, ratio = a / b.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace opledger::core {

/// Both engines within this of each other, the whole interval: the same, for every practical purpose.
inline constexpr double kSameRatio = 0.02;

/// A figure and its 95% interval; either may be unknown.
struct Measured {
  std::optional<double> ms;
  std::optional<std::array<double, 2>> ci_ms;
};

struct ReplaySide {
  Measured cost;  ///< plain increment per copy
  std::optional<int> copies;
  std::string weights;                         ///< same, sibling, shadow; "warm" is a note of the row
  std::optional<double> copy_ms, original_ms;  ///< c and o' of the stamped replay
};

struct Row {
  std::string scope;
  std::vector<std::string> categories;
  std::string evidence;  ///< stamp, replay
  Measured a, b, gap;
  bool is_real = false;
  /// What two launches of one engine may differ by in this row; a gap below it is printed as `< x ms`.
  /// Empty below two launch groups. Not part of the published JSON.
  std::optional<double> noise_floor_ms;
  std::optional<double> share_of_gap;
  Measured stamp_a, stamp_b;
  std::optional<ReplaySide> replay_a, replay_b;
  int nodes_a = 0, nodes_b = 0;
  std::optional<std::string> bound;
  std::vector<std::string> notes;
};

enum class CheckStatus { kHeld, kFailed, kNotRun };

struct Check {
  std::string name;
  std::string engine;  ///< "a", "b" or "" for both
  CheckStatus status = CheckStatus::kNotRun;
  std::optional<double> value, limit;
  std::string text;
  /// Of a failed check: something wrong was shown. False where too little was measured to deny it. Not part
  /// of the published JSON.
  bool is_shown = true;
};

struct WorkloadSide {
  std::string engine;
  Measured wall, graph;
  std::optional<double> tokens_per_s;
  int launch_groups = 0;
  int passes = 0;
  int dropped = 0;
  std::optional<double> excluded_bytes_ratio;
};

struct WorkloadLedger {
  std::string name;
  int tokens = 0;
  bool is_per_token = false;  ///< decode: figures are per token. Not part of the published JSON
  WorkloadSide a, b;
  Measured gap;
  Measured graph_gap;
  std::optional<double> ratio;
  std::optional<std::array<double, 2>> ratio_ci;
  std::optional<double> noise_floor_ms;
  Measured wall_minus_graph_a, wall_minus_graph_b, wall_minus_graph_gap;
  Measured unexplained_a, unexplained_b, unexplained_gap;
  Measured barrier_a, barrier_b, barrier_gap;  ///< of which: already inside the rows
  bool is_contaminated = false;  ///< too much else ran to tell anything. Not in the published JSON
  std::string verdict;           ///< "faster", "slower" (a against b), "same", "cannot tell"
  std::vector<Row> rows;         ///< sorted by gap, largest first
  std::vector<Check> checks;
  std::vector<std::string> next, leave, not_solid;
};

struct Ledger {
  std::string engine_a, engine_b;
  std::vector<WorkloadLedger> workloads;
  std::vector<std::string> differs;  ///< what differs between the two sides before any row
  std::string machine_json;          ///< the record's facts, as JSON text
  std::string engines_json;
  std::string end_reason;  ///< why the session ended

  /// No check failed, and those that must run (identical, complete, closes, clocks agree) did, for every
  /// engine and row of every workload. False for a ledger without workloads.
  [[nodiscard]] bool every_check_held() const;
};

/// "held", "failed" or "not run".
const char* check_status_name(CheckStatus status);

/// Whether the whole interval lies on one side of 0; false without one.
bool excludes_zero(const Measured& figure);

/// Whether a ledger proves nothing without this check: `identical`, `complete`, `closes`, `clocks agree`.
bool must_run(const Check& check);

/// What a program that printed this ledger exits with: 0 measured and every check held, 4 otherwise
/// or when a verdict is "cannot tell".
int exit_code_of(const Ledger& ledger);

}  // namespace opledger::core
