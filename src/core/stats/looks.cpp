#include "core/stats/looks.h"

namespace opledger::core {

std::optional<int> last_look(int samples) {
  std::optional<int> last;
  for (const int look : kLooks) {
    if (look <= samples) last = look;
  }
  return last;
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
