// Estimates with 95% intervals. Launch groups are the samples that count: passes of one process agree with
// each other better than with the next process, so an interval over passes alone is tight and false.
#pragma once

#include <optional>
#include <span>

namespace opledger::core {

struct Interval {
  double low = 0;
  double high = 0;
  [[nodiscard]] bool holds(double value) const { return low <= value && value <= high; }
  [[nodiscard]] bool lies_inside(double most) const { return -most <= low && high <= most; }
  [[nodiscard]] double half_width() const { return (high - low) / 2; }
};

/// `interval` is empty below three samples: with two, t is 12.7 and says nothing.
struct Estimate {
  double centre = 0;
  std::optional<Interval> interval;
};

/// Samples below which no interval is given.
inline constexpr int kFewestForInterval = 3;

/// Mean with Student's t interval, which may miss the truth in `error_ratio` of cases. Empty for no samples.
std::optional<Estimate> mean_interval(std::span<const double> samples, double error_ratio = 0.05);

/// Geometric mean of a[i] / b[i], with Student's t interval of the paired log-ratios. Empty unless both have
/// the same number of samples, at least one, all above 0.
std::optional<Estimate> paired_ratio_interval(std::span<const double> a, std::span<const double> b);

/// Mean of what stays after the lowest and highest fifth are cut (none below five samples), with the interval
/// of Tukey and McLaughlin (1963): one disturbed pass neither moves it nor blows it up. `error_ratio`: of
/// cases in which the interval may miss the truth. Empty for no samples.
std::optional<Estimate> trimmed_mean_interval(std::span<const double> samples, double error_ratio = 0.05);

/// The gap that an engine compared with itself over as many launches would exceed once in a hundred times:
/// t(0.995) * pooled standard deviation * sqrt(1 / groups of a + 1 / groups of b), pooled over both engines'
/// group figures. Empty below two groups on both sides.
std::optional<double> launch_noise_floor(std::span<const double> a, std::span<const double> b);

/// The same for launches measured in turns, which a drift of the machine slows alike: t(0.995) * standard
/// deviation of the paired log-ratios / sqrt(pairs), carried over to the mean of both. Empty below three
/// pairs, or unless all are above 0.
std::optional<double> paired_noise_floor(std::span<const double> a, std::span<const double> b);

}  // namespace opledger::core
