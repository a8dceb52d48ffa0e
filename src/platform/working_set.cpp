// Threads with a slice each; a reading counts from the moment the first of them starts to the moment the last
// is done, by their own clocks: where the readers fill all cores, a thread that times them from outside wakes
// up late, and once told 15 TB/s of a cache.
#include "platform/working_set.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstring>
#include <thread>

namespace opledger::platform {
namespace {

// A vector that every x86-64 has a register for, in four independent sums: enough loads in flight to be bound
// by the memory, not by an add.
using Lane = uint64_t __attribute__((vector_size(16)));

uint64_t sum_of(const Lane* begin, size_t count) {
  Lane a{};
  Lane b{};
  Lane c{};
  Lane d{};
  for (size_t i = 0; i + 4 <= count; i += 4) {
    a += begin[i];
    b += begin[i + 1];
    c += begin[i + 2];
    d += begin[i + 3];
  }
  const Lane total = a + b + c + d;
  return total[0] + total[1];
}

/// One thread's part: a slice that it touched itself, and the readings in step with the others.
class Reader {
 public:
  explicit Reader(int64_t bytes)
      : lanes_(static_cast<size_t>(bytes) / sizeof(Lane)), memory_(lanes_, Lane{1, 2}) {}

  void read(int64_t bytes, int repeats) {
    const size_t count = std::min(lanes_, static_cast<size_t>(bytes) / sizeof(Lane));
    uint64_t total = 0;
    for (int i = 0; i < repeats; ++i) {
      total += sum_of(memory_.data(), count);
      // Or the compiler sees that every repeat gives the same sum, and reads once.
      asm volatile("" : : "r"(memory_.data()) : "memory");
    }
    sink.fetch_add(total, std::memory_order_relaxed);  // or it drops the reading
  }

 private:
  size_t lanes_;
  std::vector<Lane> memory_;
  inline static std::atomic<uint64_t> sink{0};
};

struct Span {
  int64_t began_ns = 0, ended_ns = 0;
};

/// Nanoseconds that all readers together take for `repeats` passes over their slices.
int64_t time_reading(std::vector<Reader>& readers, int64_t slice_bytes, int repeats, const Clock& clock) {
  std::barrier gate(static_cast<std::ptrdiff_t>(readers.size()));
  std::vector<Span> spans(readers.size());
  std::vector<std::thread> threads;
  threads.reserve(readers.size());
  for (size_t i = 0; i < readers.size(); ++i) {
    threads.emplace_back([&, i] {
      gate.arrive_and_wait();
      const int64_t began_ns = clock.now_ns();
      readers[i].read(slice_bytes, repeats);
      spans[i] = {began_ns, clock.now_ns()};
    });
  }
  for (std::thread& thread : threads) thread.join();
  Span all = spans.front();
  for (const Span& span : spans)
    all = {std::min(all.began_ns, span.began_ns), std::max(all.ended_ns, span.ended_ns)};
  return std::max<int64_t>(all.ended_ns - all.began_ns, 1);
}

WorkingSetPoint best_reading(std::vector<Reader>& readers, int64_t bytes, const WorkingSetOptions& options,
                             const Clock& clock) {
  const int64_t slice_bytes = bytes / static_cast<int64_t>(readers.size());
  // A reading of a small set must last long enough (about 1 ms) for the gates around it not to matter.
  const int repeats = static_cast<int>(std::clamp<int64_t>((int64_t{32} << 20) / bytes, 1, 128));
  const int64_t started_ns = clock.now_ns();
  int64_t best_ns = 0;
  int readings = 0;
  while (readings < 3 || (clock.now_ns() - started_ns < options.time_per_size_ns && readings < 1000)) {
    const int64_t took_ns = time_reading(readers, slice_bytes, repeats, clock);
    best_ns = readings == 0 ? took_ns : std::min(best_ns, took_ns);
    ++readings;
  }
  const double bytes_read = static_cast<double>(bytes) * repeats;
  return {bytes, static_cast<int64_t>(bytes_read * 1e9 / static_cast<double>(best_ns))};
}

}  // namespace

WorkingSetCurve probe_working_set(const WorkingSetOptions& options, const Clock& clock) {
  const int threads = std::max(options.threads, 1);
  std::vector<Reader> readers;
  readers.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) readers.emplace_back(options.largest_bytes / threads);
  WorkingSetCurve curve;
  for (int64_t bytes = options.smallest_bytes; bytes <= options.largest_bytes; bytes *= 2) {
    curve.points.push_back(best_reading(readers, bytes, options, clock));
  }
  curve.knee_bytes = knee_of(curve.points);
  return curve;
}

std::optional<int64_t> knee_of(const std::vector<WorkingSetPoint>& points) {
  if (points.size() < 4) return std::nullopt;
  const size_t count = points.size();
  const double settled = 0.5 * (static_cast<double>(points[count - 1].read_bytes_per_s) +
                                static_cast<double>(points[count - 2].read_bytes_per_s));
  for (size_t i = count; i-- > 0;) {
    if (static_cast<double>(points[i].read_bytes_per_s) >= 1.5 * settled) return points[i].bytes;
  }
  return std::nullopt;
}

}  // namespace opledger::platform
