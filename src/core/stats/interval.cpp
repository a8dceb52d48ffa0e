// Student's t throughout: a percentile bootstrap of three groups covers 74%, not 95%.
#include "core/stats/interval.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/stats/student.h"
#include "core/stats/summary.h"

namespace opledger::core {

namespace {

// A comparison of an engine with itself may exceed its floor once in a hundred times.
constexpr double kFloorTail = 0.995;
constexpr double kTrimmedShare = 0.2;

std::optional<Interval> around(double centre, double standard_error, int degrees, double error_ratio) {
  const double reach = student_t_quantile(1 - error_ratio / 2, degrees).value_or(0) * standard_error;
  return Interval{centre - reach, centre + reach};
}

double squares_around_mean(std::span<const double> samples) {
  const double spread = sample_stddev(samples).value_or(0);
  return samples.size() < 2 ? 0 : spread * spread * static_cast<double>(samples.size() - 1);
}

/// Empty unless there are as many of both and all are above 0.
std::vector<double> log_ratios(std::span<const double> a, std::span<const double> b) {
  std::vector<double> logs;
  if (a.size() != b.size()) return logs;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!(a[i] > 0) || !(b[i] > 0)) return {};
    logs.push_back(std::log(a[i] / b[i]));
  }
  return logs;
}

}  // namespace

std::optional<Estimate> mean_interval(std::span<const double> samples, double error_ratio) {
  const std::optional<double> mean = mean_of(samples);
  if (!mean) return std::nullopt;
  const auto count = static_cast<int>(samples.size());
  if (count < kFewestForInterval) return Estimate{*mean, std::nullopt};
  const double standard_error = *sample_stddev(samples) / std::sqrt(count);
  return Estimate{*mean, around(*mean, standard_error, count - 1, error_ratio)};
}

std::optional<Estimate> paired_ratio_interval(std::span<const double> a, std::span<const double> b) {
  const std::optional<Estimate> logs = mean_interval(log_ratios(a, b));
  if (!logs) return std::nullopt;
  Estimate ratio{std::exp(logs->centre), std::nullopt};
  if (logs->interval)
    ratio.interval = Interval{std::exp(logs->interval->low), std::exp(logs->interval->high)};
  return ratio;
}

std::optional<Estimate> trimmed_mean_interval(std::span<const double> samples, double error_ratio) {
  const auto count = static_cast<int>(samples.size());
  const auto cut = static_cast<int>(kTrimmedShare * count);
  if (cut == 0) return mean_interval(samples, error_ratio);
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const int kept = count - 2 * cut;
  const std::span<const double> middle(sorted.data() + cut, static_cast<size_t>(kept));
  const double centre = *mean_of(middle);
  std::vector<double> winsorised = sorted;
  for (double& sample : winsorised) sample = std::clamp(sample, middle.front(), middle.back());
  const double standard_error =
      *sample_stddev(winsorised) / ((1 - 2.0 * cut / count) * std::sqrt(static_cast<double>(count)));
  return Estimate{centre, around(centre, standard_error, kept - 1, error_ratio)};
}

std::optional<double> launch_noise_floor(std::span<const double> a, std::span<const double> b) {
  int degrees = 0;
  for (const auto& side : {a, b}) degrees += std::max(0, static_cast<int>(side.size()) - 1);
  if (a.size() < 2 || b.size() < 2) return std::nullopt;
  const double pooled = std::sqrt((squares_around_mean(a) + squares_around_mean(b)) / degrees);
  const double groups = 1.0 / static_cast<double>(a.size()) + 1.0 / static_cast<double>(b.size());
  return *student_t_quantile(kFloorTail, degrees) * pooled * std::sqrt(groups);
}

std::optional<double> paired_noise_floor(std::span<const double> a, std::span<const double> b) {
  const std::vector<double> logs = log_ratios(a, b);
  const auto count = static_cast<int>(logs.size());
  if (count < kFewestForInterval) return std::nullopt;
  const double reach = *student_t_quantile(kFloorTail, count - 1) * *sample_stddev(logs) /
                       std::sqrt(static_cast<double>(count));
  return (*mean_of(a) + *mean_of(b)) * std::tanh(reach / 2);
}

}  // namespace opledger::core
