// Textbook formulas; x is centred first, which keeps the sums small.
#include "core/stats/fit.h"

#include <cmath>
#include <vector>

#include "core/stats/student.h"
#include "core/stats/summary.h"

namespace opledger::core {

namespace {

void add_intervals(std::span<const double> x, std::span<const double> y, double mean_x, double x_squares,
                   LineFit& fit) {
  const auto count = static_cast<int>(x.size());
  if (count < kFewestForInterval) return;
  double residual_squares = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double residual = y[i] - fit.intercept - fit.slope * x[i];
    residual_squares += residual * residual;
  }
  const double sigma = std::sqrt(residual_squares / (count - 2));
  const double t = *student_t_quantile(0.975, count - 2);
  const double slope_reach = t * sigma / std::sqrt(x_squares);
  const double intercept_reach = t * sigma * std::sqrt(1.0 / count + mean_x * mean_x / x_squares);
  fit.slope_interval = Interval{fit.slope - slope_reach, fit.slope + slope_reach};
  fit.intercept_interval = Interval{fit.intercept - intercept_reach, fit.intercept + intercept_reach};
}

}  // namespace

std::optional<LineFit> fit_line(std::span<const double> x, std::span<const double> y) {
  if (x.size() != y.size() || x.size() < 2) return std::nullopt;
  const double mean_x = *mean_of(x);
  const double mean_y = *mean_of(y);
  double x_squares = 0;
  double products = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    x_squares += (x[i] - mean_x) * (x[i] - mean_x);
    products += (x[i] - mean_x) * (y[i] - mean_y);
  }
  if (x_squares == 0) return std::nullopt;
  LineFit fit;
  fit.slope = products / x_squares;
  fit.intercept = mean_y - fit.slope * mean_x;
  add_intervals(x, y, mean_x, x_squares, fit);
  return fit;
}

std::optional<LineFit> fit_line_robust(std::span<const double> x, std::span<const double> y) {
  if (x.size() != y.size()) return std::nullopt;
  std::vector<double> slopes;
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t j = i + 1; j < x.size(); ++j) {
      if (x[i] != x[j]) slopes.push_back((y[j] - y[i]) / (x[j] - x[i]));
    }
  }
  if (slopes.empty()) return std::nullopt;
  LineFit fit;
  fit.slope = *median_of(slopes);
  std::vector<double> offsets;
  for (size_t i = 0; i < x.size(); ++i) offsets.push_back(y[i] - fit.slope * x[i]);
  fit.intercept = *median_of(offsets);
  return fit;
}

}  // namespace opledger::core
