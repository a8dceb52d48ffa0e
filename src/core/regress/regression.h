// What one record says of a head against its base: regressed, improved, the same, or that it cannot be told;
// the rows that moved; and what the two graphs execute differently. In the record a is head and b is base, so
// that a gap above 0 is time that head takes longer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/ledger/analyse.h"
#include "core/ledger/ledger.h"
#include "core/regress/graph_difference.h"
#include "core/stats/verdict.h"

namespace opledger::core {

/// A row that the ledger calls real.
struct MovedRow {
  Row row;
  std::optional<double> share_of_pass_ratio;  ///< its gap over base's wall; signed
};

/// One workload. Of verdicts, `slower` is head's: a regression.
struct WorkloadRegression {
  Verdict verdict = Verdict::kCannotTell;
  std::vector<MovedRow> moved;  ///< by the size of the gap, largest first, whatever its sign
  /// Empty optional: the session ended before both graphs were known. An empty list: the same work.
  std::optional<std::vector<GraphChange>> graph_changes;
};

struct Regression {
  Ledger ledger;  ///< a is head, b is base
  double min_effect_ratio = 0;
  std::vector<WorkloadRegression> workloads;  ///< as many as the ledger's, in the same order

  /// `slower` where one workload regressed; else `cannot tell` where one cannot be told or none was measured;
  /// else `faster` where one improved; else `same`.
  [[nodiscard]] Verdict verdict() const;
};

/// "regressed", "improved", "same" or "cannot tell".
const char* regression_name(Verdict verdict);

/// Of one workload's ledger: verdict_of its time ratio and that one's interval over launch groups. `cannot
/// tell` also where the gap does not exceed the ledger's noise floor, and without an interval.
Verdict regression_verdict(const WorkloadLedger& workload, double min_effect_ratio);

/// Analyses a record. Errors as analyse() gives them. `min_effect_ratio`: differences below it are none.
Result<Regression> regression_of(const Record& record, const RulesByFamily& rules, double min_effect_ratio);

}  // namespace opledger::core
