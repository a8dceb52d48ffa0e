// The distribution function as the finite trigonometric sums of Abramowitz and Stegun 26.7.3 and 26.7.4
// (exact for whole degrees of freedom), inverted by bisection over the angle, where it is bounded.
#include "core/stats/student.h"

#include <cmath>
#include <numbers>

namespace opledger::core {

namespace {

// Probability that |t| stays below sqrt(degrees) * tan(angle).
double central_probability(double angle, int degrees) {
  const double sine = std::sin(angle);
  const double cosine = std::cos(angle);
  const bool is_odd = degrees % 2 == 1;
  if (degrees == 1) return 2 * angle / std::numbers::pi;
  double term = is_odd ? cosine : 1.0;
  double sum = term;
  for (int j = is_odd ? 3 : 2; j <= degrees - 2; j += 2) {
    term *= cosine * cosine * static_cast<double>(j - 1) / static_cast<double>(j);
    sum += term;
  }
  return is_odd ? 2 / std::numbers::pi * (angle + sine * sum) : sine * sum;
}

}  // namespace

std::optional<double> student_t_quantile(double p, int degrees) {
  if (degrees < 1 || !(p > 0.0 && p < 1.0)) return std::nullopt;
  if (p == 0.5) return 0.0;
  const double central = std::abs(2 * p - 1);
  double low = 0;
  double high = std::numbers::pi / 2;
  for (int step = 0; step < 100; ++step) {
    const double middle = (low + high) / 2;
    (central_probability(middle, degrees) < central ? low : high) = middle;
  }
  const double quantile = std::sqrt(static_cast<double>(degrees)) * std::tan((low + high) / 2);
  return p > 0.5 ? quantile : -quantile;
}

}  // namespace opledger::core
