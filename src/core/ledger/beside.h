// Arms of one turn compared step by step. Internal to the analysis.
#pragma once

#include <optional>
#include <string>

#include "core/ledger/replay.h"
#include "core/ledger/samples.h"
#include "core/stats/interval.h"

namespace opledger::core::detail {

/// c - o in ms per pass (decode: per token) and copy, over all steps of all turns of the stamped replay
/// `stamped`. Of `replay`: the units covered and the copies. Empty for fewer than three turns, or where
/// passes do not tell their steps.
std::optional<Estimate> copy_excess_by_steps(const SideSamples& samples, const std::string& stamped,
                                             const ReplayFigures& replay);

/// predicted - plain increment, likewise, of the turns that hold `plain` too.
std::optional<Estimate> disagreement_by_steps(const SideSamples& samples, const std::string& stamped,
                                              const std::string& plain, const ReplayFigures& replay);

}  // namespace opledger::core::detail
