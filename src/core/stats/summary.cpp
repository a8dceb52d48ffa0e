// Sorts copies: samples here are hundreds, never millions.
#include "core/stats/summary.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace opledger::core {

std::optional<double> mean_of(std::span<const double> samples) {
  if (samples.empty()) return std::nullopt;
  const double sum = std::accumulate(samples.begin(), samples.end(), 0.0);
  return sum / static_cast<double>(samples.size());
}

std::optional<double> quantile_of(std::span<const double> samples, double p) {
  if (samples.empty() || !(p >= 0.0 && p <= 1.0)) return std::nullopt;
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const double place = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

std::optional<double> median_of(std::span<const double> samples) {
  return quantile_of(samples, 0.5);
}

std::optional<double> median_absolute_deviation(std::span<const double> samples) {
  const std::optional<double> middle = median_of(samples);
  if (!middle) return std::nullopt;
  std::vector<double> distances;
  distances.reserve(samples.size());
  for (const double sample : samples) distances.push_back(std::abs(sample - *middle));
  return median_of(distances);
}

std::optional<double> sample_stddev(std::span<const double> samples) {
  if (samples.size() < 2) return std::nullopt;
  const double mean = *mean_of(samples);
  double squares = 0;
  for (const double sample : samples) squares += (sample - mean) * (sample - mean);
  return std::sqrt(squares / static_cast<double>(samples.size() - 1));
}

}  // namespace opledger::core
