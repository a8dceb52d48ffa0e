// When a measurement that goes on may be looked at and ended, and what its interval must be then. Looking
// after every sample and ending at the first significant one finds a difference in most comparisons of a
// thing with itself; looks that are few, planned, and paid for by wider intervals do not.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "core/stats/interval.h"

namespace opledger::core {

/// Samples at each look, every one 1.5 times the one before. Fixed, so that a measurement which is taken up
/// again later is still looked at in the same places.
inline constexpr std::array<int, 6> kLooks{8, 12, 18, 27, 41, 61};

/// Of two-sided intervals at all six looks, so wrong (as a ratio of cases) that together they all hold the
/// truth in 95% of cases. Pocock's boundary (1977) for information growing by 1.5: the two-sided tail beyond
/// 2.482, found by integrating the sequential statistic's density numerically (0.05 in 1.960 for one look,
/// 0.0318 in 2.147 for two).
inline constexpr double kErrorOfLook = 0.01306;

/// The newest planned look that so many samples reach; empty before the first.
std::optional<int> last_look(int samples);

/// How many planned looks so many samples reach: 0 to 6.
int looks_reached(int samples);

/// The next planned look after `samples`; empty after the last.
std::optional<int> next_look(int samples);

/// Trimmed mean with an interval that holds the truth in 95% of measurements whichever look ends them.
/// Shape: one sample per pair. Empty for no samples; without interval below three.
std::optional<Estimate> interval_at_look(std::span<const double> samples);

}  // namespace opledger::core
