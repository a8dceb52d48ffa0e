// The checks that every ledger prints, from the record alone. Each says held, failed with its figure, or not
// run with what was missing; none is left out. Internal to the analysis.
#pragma once

#include <vector>

#include "core/ledger/ledger.h"
#include "core/ledger/pair.h"

namespace opledger::core::detail {

/// All checks of one workload, in the order in which they are printed. `complete` was made elsewhere; without
/// it the check says that it did not run.
std::vector<Check> checks_of(const PairSamples& pair, const WorkloadLedger& ledger,
                             const std::vector<Check>& complete);

// By theme, each appending its checks; in files of their own.
void add_result_checks(const PairSamples& pair, std::vector<Check>& checks);  // deterministic, identical
void add_closes(const PairSamples& pair, std::vector<Check>& checks);         // closes
void add_clocks_agree(const PairSamples& pair, const WorkloadLedger& ledger, std::vector<Check>& checks);
void add_replay_checks(const PairSamples& pair, std::vector<Check>& checks);  // linear, no negative
void add_quiet(const PairSamples& pair, std::vector<Check>& checks);          // quiet

}  // namespace opledger::core::detail
