// Straight lines through measured points: fixed cost plus cost per copy.
#pragma once

#include <optional>
#include <span>

#include "core/stats/interval.h"

namespace opledger::core {

/// y = intercept + slope * x. Intervals need three points, and are empty for the robust fit.
struct LineFit {
  double intercept = 0;
  double slope = 0;
  std::optional<Interval> intercept_interval, slope_interval;
};

/// Least squares, with 95% t intervals. Empty unless x and y have the same length and x has two values.
std::optional<LineFit> fit_line(std::span<const double> x, std::span<const double> y);

/// Theil and Sen's fit: the median of the slopes between all pairs of points, so that one disturbed pass does
/// not turn the line. Empty unless x and y have the same length and x has two values.
std::optional<LineFit> fit_line_robust(std::span<const double> x, std::span<const double> y);

}  // namespace opledger::core
