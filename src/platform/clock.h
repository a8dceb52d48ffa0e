// The seam where time comes from: everything that plans or waits takes a Clock, so that tests own the time.
#pragma once

#include <cstdint>
#include <string>

namespace opledger::platform {

/// Monotonic time in nanoseconds since an arbitrary start. Safe to read from any thread.
class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;
  [[nodiscard]] virtual int64_t now_ns() const = 0;
};

/// CLOCK_MONOTONIC, the clock that engines stamp their blocks with.
class SteadyClock final : public Clock {
 public:
  [[nodiscard]] int64_t now_ns() const override;
};

/// The date and time now, in UTC: "2026-01-02T03:04:05Z" (RFC 3339).
std::string rfc3339_now();

}  // namespace opledger::platform
