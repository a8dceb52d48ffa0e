// Whether a ledger tells enough to stop measuring.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "core/ledger/ledger.h"

namespace opledger::core {

/// Launch groups after which a session that is to stop by itself is looked at. A spread that is small by
/// chance stops it too early: at these looks an interval still holds the truth in 93.6% of cases at the least
/// (normal noise, at the worst precision; from six groups on it would be 93.0%, from four 91.8%).
inline constexpr std::array<int, 3> kPrecisionLooks{8, 11, 16};

/// What is known to no more than `precision_ratio` of the pass (half-widths of 95% intervals over the mean of
/// both engines' graph times): "the gap", and the scopes of rows that could be among the two whose gaps are
/// largest. A figure without an interval is not known. Empty: everything that matters is known.
std::vector<std::string> not_known_to(const WorkloadLedger& workload, double precision_ratio);

/// Every workload stands at a planned look, and nothing in it is left to know. False for a ledger without
/// any.
bool is_precise_enough(const Ledger& ledger, double precision_ratio);

}  // namespace opledger::core
