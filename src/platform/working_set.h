// The quick working-set probe: how large a working set may be before this machine no longer reads it at cache
// speed. One purpose: to say, before a replay is timed, whether its weights could still lie in a cache. It is
// no bandwidth benchmark: it reads, with plain vector loads, and refuses to name a ceiling.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "platform/clock.h"

namespace opledger::platform {

struct WorkingSetPoint {
  int64_t bytes = 0;             ///< read over and over, split evenly over the threads
  int64_t read_bytes_per_s = 0;  ///< of all threads together
};

struct WorkingSetCurve {
  std::vector<WorkingSetPoint> points;  ///< by size, rising
  std::optional<int64_t> knee_bytes;    ///< empty when the curve shows none
};

struct WorkingSetOptions {
  int threads = 1;
  int64_t smallest_bytes = int64_t{256} << 10;
  int64_t largest_bytes = int64_t{256} << 20;
  int64_t time_per_size_ns = 100'000'000;
};

/// Doubles the working set from the smallest to the largest size. Every size is read several times and its
/// best reading kept: on a shared machine disturbance only ever slows a reading down. About 2 s with the
/// defaults.
WorkingSetCurve probe_working_set(const WorkingSetOptions& options, const Clock& clock);

/// The largest size that is still read at 1.5 times the rate of the two largest sizes (their mean) or more.
/// Empty for fewer than four points, or when no size is that much faster: then the sizes never left the
/// cache.
std::optional<int64_t> knee_of(const std::vector<WorkingSetPoint>& points);

}  // namespace opledger::platform
