// Two engines that were never measured at the same moment, told at one speed of the machine. Internal to the
// analysis.
#pragma once

#include "core/ledger/samples.h"

namespace opledger::core::detail {

/// Sets both sides' totals of each launch group so that their ratio is that of neighbouring stints (the
/// trimmed mean over pairs) and their geometric mean stays. Groups with fewer than three pairs keep their
/// medians.
void tell_at_one_speed(SideSamples& a, SideSamples& b);

}  // namespace opledger::core::detail
