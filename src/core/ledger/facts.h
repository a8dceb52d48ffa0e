// What a reader must know before any row: what differs between the two sides, and what makes this very run
// less than solid. From the record's facts alone. Internal to the analysis.
#pragma once

#include <string>
#include <vector>

#include "core/ledger/pair.h"
#include "core/record/record.h"

namespace opledger::core::detail {

/// One line per difference; empty when both sides are alike or one is not in the record.
std::vector<std::string> differences_of(const Record& record);

/// Caveats of one workload, generated from facts.
std::vector<std::string> caveats_of(const PairSamples& pair, const WorkloadLedger& ledger);

/// The header's machine and the cache probe, as JSON text.
std::string machine_json(const Record& record);
/// `{"a": {...}, "b": {...}}`: names, specs and replies, as JSON text.
std::string engines_json(const Record& record);

}  // namespace opledger::core::detail
