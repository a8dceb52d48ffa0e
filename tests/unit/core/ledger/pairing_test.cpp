// Stints made up by hand; every expectation is worked out beside it.
#include "core/ledger/pairing.h"

#include <gtest/gtest.h>
#include <list>

namespace opledger::core::detail {
namespace {

class TwoSides {
 public:
  TwoSides() {
    a.side = Side::kA;
    b.side = Side::kB;
  }
  /// A stint of one baseline.
  void add(SideSamples& side, int64_t graph_ns) {
    Block& block = blocks_.emplace_back();
    block.arm = "baseline";
    block.place.group = 1;
    block.place.stint = static_cast<int64_t>(blocks_.size());
    block.passes.push_back({graph_ns, graph_ns, 0, 0, {}});
    side.blocks.push_back(&block);
  }
  /// A baseline whose steps took so long, in a stint that both sides have.
  void add_steps(SideSamples& side, int64_t stint, const std::vector<double>& steps_ns) {
    Block& block = blocks_.emplace_back();
    block.arm = "baseline";
    block.place.group = 1;
    block.place.stint = stint;
    double sum = 0;
    for (const double step : steps_ns) sum += step;
    block.passes.push_back({static_cast<int64_t>(sum), static_cast<int64_t>(sum), 0, 0, {}});
    side.blocks.push_back(&block);
    side.speeds[&block] = {{sum, 1.0, steps_ns}};
  }
  /// The medians of a launch group, in ms; outside the graph `outside_ms` more.
  static void set_total(SideSamples& side, double graph_ms, double outside_ms) {
    side.graph_ms[1] = graph_ms;
    side.wall_minus_graph_ms[1] = outside_ms;
    side.wall_ms[1] = graph_ms + outside_ms;
  }
  SideSamples a, b;

 private:
  std::list<Block> blocks_;
};

TEST(Pairing, TheRatioIsThatOfNeighbouringStints) {
  TwoSides sides;
  // a is 1.21 times b. The machine is twice as slow in four of a's stints and in three of b's.
  for (const auto& [first_is_a, slow] :
       {std::pair(true, 2), {false, 1}, {true, 2}, {false, 2}, {true, 1}, {false, 2}, {true, 1}}) {
    if (first_is_a) sides.add(sides.a, 121 * slow);
    sides.add(sides.b, 100 * slow);
    if (!first_is_a) sides.add(sides.a, 121 * slow);
  }
  TwoSides::set_total(sides.a, 242, 3);
  TwoSides::set_total(sides.b, 100, 1);
  tell_at_one_speed(sides.a, sides.b);
  // sqrt(242 * 100) = 155.56; times and over sqrt(1.21) = 1.1
  EXPECT_NEAR(sides.a.graph_ms.at(1), 155.5634918610405 * 1.1, 1e-9);
  EXPECT_NEAR(sides.b.graph_ms.at(1), 155.5634918610405 / 1.1, 1e-9);
  EXPECT_NEAR(sides.a.wall_ms.at(1), 155.5634918610405 * 1.1 + 3, 1e-9);
}

TEST(Pairing, OneDisturbedStintDoesNotMoveIt) {
  TwoSides sides;
  for (int i = 0; i < 5; ++i) {
    sides.add(sides.a, i == 2 ? 900 : 144);
    sides.add(sides.b, 100);
  }
  TwoSides::set_total(sides.a, 144, 0);
  TwoSides::set_total(sides.b, 100, 0);
  tell_at_one_speed(sides.a, sides.b);
  EXPECT_NEAR(sides.a.graph_ms.at(1), 144, 1e-9);
  EXPECT_NEAR(sides.b.graph_ms.at(1), 100, 1e-9);
}

TEST(Pairing, InSharedStintsStepsAreComparedWithStepsBesideThem) {
  TwoSides sides;
  // a is 1.44 times b in every step; the machine is three times as slow in the last step of each pass, and
  // the two stints' medians would say otherwise, since b's second pass is disturbed.
  for (int stint = 1; stint <= 2; ++stint) {
    sides.add_steps(sides.a, stint, {144, 144, 432});
    sides.add_steps(sides.b, stint, {100, 100, stint == 1 ? 300.0 : 900.0});
  }
  TwoSides::set_total(sides.a, 242, 0);
  TwoSides::set_total(sides.b, 100, 0);
  tell_at_one_speed(sides.a, sides.b);
  EXPECT_NEAR(sides.a.graph_ms.at(1) / sides.b.graph_ms.at(1), 1.44, 1e-9);
}

TEST(Pairing, FewerThanThreePairsSayNothing) {
  TwoSides sides;
  for (int i = 0; i < 4; ++i) sides.add(sides.a, 200);  // all of a before all of b: one pair
  for (int i = 0; i < 4; ++i) sides.add(sides.b, 100);
  TwoSides::set_total(sides.a, 150, 0);
  TwoSides::set_total(sides.b, 120, 0);
  tell_at_one_speed(sides.a, sides.b);
  EXPECT_EQ(sides.a.graph_ms.at(1), 150);
  EXPECT_EQ(sides.b.graph_ms.at(1), 120);
}

}  // namespace
}  // namespace opledger::core::detail
