// Medians, quantiles and spreads of plain samples. Units are the caller's: what goes in comes out. Every
// function is empty when the samples cannot answer; none returns NaN or a spread of 0 for one sample.
#pragma once

#include <optional>
#include <span>

namespace opledger::core {

/// Empty for no samples.
std::optional<double> mean_of(std::span<const double> samples);

/// The middle sample, or the mean of the two middle ones. Empty for no samples.
std::optional<double> median_of(std::span<const double> samples);

/// The `p` quantile (0 to 1), linear between order statistics (definition 7 of Hyndman and Fan, 1996).
/// Empty for no samples or `p` outside 0 to 1.
std::optional<double> quantile_of(std::span<const double> samples, double p);

/// Median of the distances from the median, not scaled to a standard deviation. Empty for no samples.
std::optional<double> median_absolute_deviation(std::span<const double> samples);

/// Sample standard deviation, two-pass: the mean-of-squares form loses everything on large, nearly equal
/// values. Empty for fewer than two samples.
std::optional<double> sample_stddev(std::span<const double> samples);

}  // namespace opledger::core
