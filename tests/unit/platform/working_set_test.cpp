// Curves drawn by hand; the machine itself is only asked for the form of its answer.
#include "platform/working_set.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace opledger::platform {
namespace {

std::vector<WorkingSetPoint> curve(const std::vector<int64_t>& gb_per_s) {
  std::vector<WorkingSetPoint> points;
  int64_t bytes = 1 << 20;
  for (const int64_t rate : gb_per_s) {
    points.push_back({bytes, rate * 1'000'000'000});
    bytes *= 2;
  }
  return points;
}

TEST(Knee, IsTheLastSizeAtCacheSpeed) {
  // 1, 2, 4, 8 MiB at cache speed, 16 MiB half out, memory from 32 MiB: 8 MiB is the last at 1.5 times 10
  // GB/s.
  EXPECT_EQ(knee_of(curve({60, 60, 58, 40, 14, 10, 10})), int64_t{8} << 20);
}

TEST(Knee, TakesTheOuterCacheWhenThereAreTwo) {
  EXPECT_EQ(knee_of(curve({100, 100, 30, 30, 30, 10, 10})), int64_t{16} << 20);
}

TEST(Knee, IsUnknownOnAFlatCurve) {
  EXPECT_FALSE(knee_of(curve({20, 21, 20, 19, 20, 20})));
}

TEST(Knee, IsUnknownForTooFewPoints) {
  EXPECT_FALSE(knee_of(curve({60, 10, 10})));
}

TEST(Knee, OneNoisyLargeSizeDoesNotHideIt) {
  EXPECT_EQ(knee_of(curve({60, 60, 60, 20, 10, 10, 8})), int64_t{8} << 20);
}

TEST(WorkingSetProbe, ReadsNoFasterThanLoadsCan) {
  // Three loads of 16 bytes in a cycle of 6 GHz are more than any core does. With as many readers as cores
  // one that is timed from outside is done before its time begins.
  WorkingSetOptions options;
  options.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  options.largest_bytes = 1 << 22;
  options.time_per_size_ns = 20'000'000;
  const double most = 48 * 6e9 * options.threads;
  for (const WorkingSetPoint& point : probe_working_set(options, SteadyClock()).points)
    EXPECT_LT(static_cast<double>(point.read_bytes_per_s), most) << point.bytes;
}

class CountingClock final : public Clock {
 public:
  [[nodiscard]] int64_t now_ns() const override { return now_ns_ += 1'000'000; }

 private:
  mutable std::atomic<int64_t> now_ns_ = 0;
};

TEST(WorkingSetProbe, DoublesFromTheSmallestToTheLargestSize) {
  WorkingSetOptions options;
  options.threads = 1;
  options.smallest_bytes = 1 << 16;
  options.largest_bytes = 1 << 18;
  options.time_per_size_ns = 0;
  const WorkingSetCurve found = probe_working_set(options, CountingClock());
  ASSERT_EQ(found.points.size(), 3U);
  EXPECT_EQ(found.points[0].bytes, 65536);
  EXPECT_EQ(found.points[2].bytes, 262144);
  // By that clock every reading takes 1 ms: 128 passes over 64 KiB in 1 ms.
  EXPECT_EQ(found.points[0].read_bytes_per_s, int64_t{128} * 65536 * 1000);
  EXPECT_FALSE(found.knee_bytes);
}

}  // namespace
}  // namespace opledger::platform
