// Rows and totals of one workload. Internal to the analysis.
#pragma once

#include "core/ledger/ledger.h"
#include "core/ledger/pair.h"

namespace opledger::core::detail {

/// 5% of the row or 0.5% of the pass, whichever is larger: within this the two clocks must agree.
double clock_tolerance_ms(double row_ms, double pass_ms);

/// Everything of the ledger but its checks and caveats.
WorkloadLedger ledger_of(const PairSamples& pair);

}  // namespace opledger::core::detail
