// Reads CLOCK_MONOTONIC.
#include "platform/clock.h"

#include <ctime>

namespace opledger::platform {

int64_t SteadyClock::now_ns() const {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace opledger::platform
