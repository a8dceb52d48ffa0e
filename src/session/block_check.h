// Looks at a block notification before it may enter a record: an engine that sends nonsense must not poison
// what was measured before it. Judges form only; whether times and digests are right is the analysis's to
// say.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "session/schedule.h"

namespace opledger::session {

/// The graph time of every step of every pass of a block; of the whole pass where it does not tell its steps.
/// Tables of times have a row for each. The passes must have been checked.
std::vector<nlohmann::json> steps_of(const nlohmann::json& block);

/// A failure naming the key unless `block` has the form that docs/protocol.md gives it for what was asked.
/// `units` is the workload's number of units.
Status check_block(const nlohmann::json& block, const std::string& workload, const ExpectedBlock& asked,
                   size_t units);

}  // namespace opledger::session
