// Two engines, of which one is always stopped at the same moment, told at one speed of the machine. Internal
// to the analysis.
#pragma once

#include "core/ledger/samples.h"

namespace opledger::core::detail {

/// Sets both sides' totals of each launch group so that their ratio is the trimmed mean over pairs and their
/// geometric mean stays. Pairs are the steps of shared stints; where a group has none, neighbouring stints.
/// Groups with fewer than three pairs keep their medians.
void tell_at_one_speed(SideSamples& a, SideSamples& b);

}  // namespace opledger::core::detail
