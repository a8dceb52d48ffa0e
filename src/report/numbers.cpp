#include "report/numbers.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace opledger::report {

namespace {

constexpr const char* kUnknown = "-";

// Four digits of the value as it will be printed: 9.9996 is 10.00.
int decimals_for(double value) {
  const double size = std::abs(value);
  if (size >= 999.95) return 0;
  if (size >= 99.995) return 1;
  return size >= 9.9995 ? 2 : 3;
}

std::string with_decimals(double value, int decimals) {
  return fmt::format("{:.{}f}", value, decimals);
}

}  // namespace

std::string ms_text(double ms) {
  return with_decimals(ms, decimals_for(ms));
}

std::string signed_ms_text(double ms) {
  return fmt::format("{:+.{}f}", ms, decimals_for(ms));
}

std::string difference_text(const core::Measured& difference) {
  if (!difference.ms) return kUnknown;
  if (!difference.ci_ms) return ms_text(*difference.ms);
  const auto [low, high] = *difference.ci_ms;
  return fmt::format("{} ± {}", ms_text(*difference.ms),
                     with_decimals((high - low) / 2, decimals_for(*difference.ms)));
}

std::string cost_text(const core::Measured& cost) {
  if (!cost.ms) return kUnknown;
  if (!cost.ci_ms) return ms_text(*cost.ms);
  const auto [low, high] = *cost.ci_ms;
  // One whose interval reaches 0 costs less than its upper end. One that lies below it is wrong, and shown.
  if (low <= 0 && high >= 0) return "< " + ms_text(std::max(high, 0.001));
  return difference_text(cost);
}

std::string gap_text(const core::Measured& gap, std::optional<double> floor_ms) {
  if (!gap.ms) return kUnknown;
  if (floor_ms && *floor_ms > 0 && std::abs(*gap.ms) <= *floor_ms) return "< " + ms_text(*floor_ms);
  return signed_ms_text(*gap.ms);
}

std::string interval_text(const std::optional<std::array<double, 2>>& ci_ms) {
  if (!ci_ms) return kUnknown;
  const int decimals = decimals_for(std::max(std::abs((*ci_ms)[0]), std::abs((*ci_ms)[1])));
  return fmt::format("[{:+.{}f}, {:+.{}f}]", (*ci_ms)[0], decimals, (*ci_ms)[1], decimals);
}

std::string share_text(const std::optional<double>& share_ratio) {
  return share_ratio ? fmt::format("{:.0f}%", 100 * *share_ratio) : kUnknown;
}

std::string percent_text(double ratio) {
  return fmt::format("{:.3g}%", 100 * ratio);
}

std::string rate_text(const std::optional<double>& tokens_per_s) {
  return tokens_per_s ? with_decimals(*tokens_per_s, *tokens_per_s >= 1000 ? 0 : 1) : kUnknown;
}

size_t columns_of(std::string_view text) {
  // Continuation bytes of UTF-8 take no column of their own.
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace opledger::report
