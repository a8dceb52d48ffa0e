#include "core/stats/looks.h"

#include <algorithm>

namespace opledger::core {

std::optional<int> last_look(int samples) {
  std::optional<int> last;
  for (const int look : kLooks) {
    if (look <= samples) last = look;
  }
  return last;
}

int looks_reached(int samples) {
  const auto is_reached = [&](int look) { return look <= samples; };
  return static_cast<int>(std::count_if(kLooks.begin(), kLooks.end(), is_reached));
}

std::optional<int> next_look(int samples) {
  for (const int look : kLooks) {
    if (look > samples) return look;
  }
  return std::nullopt;
}

std::optional<Estimate> interval_at_look(std::span<const double> samples) {
  return trimmed_mean_interval(samples, kErrorOfLook);
}

}  // namespace opledger::core
