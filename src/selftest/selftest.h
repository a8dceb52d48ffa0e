// Plants known things into one engine and looks whether the method finds them: work of known size in a row,
// and faults in the method itself. Every session is a comparison of the engine with itself; it knows no
// engine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "platform/clock.h"
#include "platform/interrupt.h"
#include "selftest/verdict.h"
#include "session/compare.h"
#include "session/progress.h"

namespace opledger::selftest {

struct Options {
  session::CompareOptions compare;  ///< both specs name the engine; one workload; the budget is of one row
  /// To plant work in; empty: default_rows.
  std::optional<std::vector<std::string>> rows;
  double share_ratio = 0.05;  ///< of the pass, that the planted work takes
  std::vector<Fault> faults;  ///< to plant
};

struct Report {
  std::string workload;
  double pass_ms = 0;  ///< per token (prefill: per pass), with nothing planted
  /// A check that showed something though nothing was planted; empty as it should be.
  std::vector<std::string> false_alarms;
  std::vector<RowVerdict> rows;
  std::vector<FaultVerdict> faults;
  double elapsed_s = 0;

  /// Every planted row was found, every fault was noticed, and nothing else was.
  [[nodiscard]] bool passed() const;
};

/// Rows to plant work in: the largest, the largest that holds at most a fifth of the pass, the largest that
/// holds at most a thirtieth (else the smallest). Fewer where they are the same.
std::vector<std::string> default_rows(const core::WorkloadLedger& ledger);

/// Takes one short session with nothing planted, one for each fault, and one of the budget for each row. Bad
/// input: an engine that cannot plant work, a row that is not there. What an engine's failure in a session
/// with a fault says about that fault is in the report.
Result<Report> run_selftest(const Options& options, const platform::Clock& clock,
                            const platform::Interrupt& interrupt, session::Progress& progress);

}  // namespace opledger::selftest
