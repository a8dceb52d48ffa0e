// Speeds of passes made up by hand; times in ns. Every expectation is worked out beside it.
#include "core/ledger/speed.h"

#include <gtest/gtest.h>
#include <list>
#include <numeric>
#include <string>
#include <vector>

#include "core/ledger/samples.h"

namespace opledger::core::detail {
namespace {

class Turns {
 public:
  /// A block of one pass; without steps it has `graph_ns` alone.
  const Block* add(const std::string& arm, int64_t turn, std::vector<int64_t> steps, int64_t graph_ns = 0) {
    Block& block = blocks_.emplace_back();
    block.arm = arm;
    block.place.group = 1;
    block.place.turn = turn;
    block.place.sequence = static_cast<int64_t>(blocks_.size());
    const int64_t sum = std::accumulate(steps.begin(), steps.end(), int64_t{0});
    block.passes.push_back({sum + graph_ns, sum + graph_ns, 0, 0, std::move(steps)});
    order_.push_back(&block);
    return &block;
  }
  [[nodiscard]] PassSpeed speed_of(const Block* block) const { return speeds_of(order_).at(block).at(0); }

 private:
  std::list<Block> blocks_;
  std::vector<const Block*> order_;
};

TEST(Speed, ChangesWithinATurnDoNotLengthenAnArm) {
  Turns turns;
  const Block* arm = turns.add("stamp", 1, {150, 150, 150, 300, 300, 300, 300, 150});
  turns.add("baseline", 1, {100, 100, 100, 200, 200, 200, 200, 100});
  EXPECT_NEAR(turns.speed_of(arm).relative_ratio, 1.5, 1e-12);
  // Eight times the geometric mean of three steps of 100 and three of 200.
  EXPECT_NEAR(turns.speed_of(arm).baseline_ns, 8 * 141.4213562373095, 1e-9);
}

TEST(Speed, ARowIsToldRightWhetherOrNotItChangesWithTheMachine) {
  // The machine flips between 16 and 60 ms a step. A spin of 1.4 ms takes 1.4 ms at either speed; a row that
  // is a tenth of every step is a tenth of the whole.
  const std::vector<double> steps{16, 60, 16, 60, 60, 16, 60, 16};
  SideSamples samples;
  samples.ms_per_ns = 1;
  Block block;
  block.place.group = 1;
  block.passes.push_back({304, 304, 0, 0, {16, 60, 16, 60, 60, 16, 60, 16}});
  const double pass = 8 * middle_of_steps(steps);
  samples.speeds[&block] = {{pass, 1.0, steps}};
  samples.graph_ms[1] = pass;
  EXPECT_NEAR(at_speed_of_group(samples, block, 0, std::vector<double>(8, 1.4)), 8 * 1.4, 1e-9);
  std::vector<double> tenth;
  for (const double step : steps) tenth.push_back(step / 10);
  EXPECT_NEAR(at_speed_of_group(samples, block, 0, tenth), pass / 10, 1e-9);
}

TEST(Speed, ADisturbedStepDoesNotLengthenItsArm) {
  Turns turns;
  turns.add("baseline", 1, {100, 100, 100, 100, 100});
  const Block* arm = turns.add("stamp", 1, {110, 110, 990, 110, 110});
  turns.add("replay", 1, {160, 160, 160, 160, 160});
  EXPECT_NEAR(turns.speed_of(arm).relative_ratio, 1.1, 1e-12);
  EXPECT_NEAR(turns.speed_of(arm).baseline_ns, 500, 1e-9);
}

TEST(Speed, ADisturbedBaselineIsSeenThroughByTheOtherArms) {
  Turns turns;
  turns.add("baseline", 1, {100, 700, 100, 100, 100});
  const Block* arm = turns.add("stamp", 1, {110, 110, 110, 110, 110});
  const Block* other = turns.add("replay", 1, {160, 160, 160, 160, 160});
  EXPECT_NEAR(turns.speed_of(arm).relative_ratio, 1.1, 1e-12);
  EXPECT_NEAR(turns.speed_of(other).relative_ratio, 1.6, 1e-12);
  EXPECT_NEAR(turns.speed_of(arm).baseline_ns, 500, 1e-9);
}

TEST(Speed, WithoutStepsIsThatOfTheBaselinesOnBothSides) {
  Turns turns;
  turns.add("baseline", 1, {}, 100);
  const Block* arm = turns.add("stamp", 2, {}, 240);
  turns.add("baseline", 3, {}, 140);
  EXPECT_NEAR(turns.speed_of(arm).baseline_ns, 120, 1e-9);
  EXPECT_NEAR(turns.speed_of(arm).relative_ratio, 2.0, 1e-12);
}

TEST(Speed, WithoutStepsTheBaselineOfTheTurnGoesBeforeItsNeighbours) {
  Turns turns;
  turns.add("baseline", 1, {}, 100);
  const Block* arm = turns.add("stamp", 2, {}, 240);
  turns.add("baseline", 2, {}, 160);
  EXPECT_NEAR(turns.speed_of(arm).baseline_ns, 160, 1e-9);
}

TEST(Speed, IsNotKnownWithoutABaselineOfTheLaunch) {
  Turns turns;
  const Block* arm = turns.add("stamp", 1, {}, 240);
  std::vector<const Block*> alone{arm};
  EXPECT_TRUE(speeds_of(alone).empty());
}

}  // namespace
}  // namespace opledger::core::detail
