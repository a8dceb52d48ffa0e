// Where spins go, in round figures worked out by hand.
#include "session/plant.h"

#include <gtest/gtest.h>
#include <numeric>
#include <string>
#include <vector>

namespace opledger::session {
namespace {

/// One graph of `units` units, called `calls` times in a pass.
core::WorkloadGraph graph_of(int units, size_t calls) {
  core::WorkloadGraph graph;
  graph.calls.assign(calls, 0);
  graph.graphs.emplace_back();
  for (int u = 0; u < units; ++u) graph.graphs.back().units.push_back({{u}, "single"});
  return graph;
}

std::vector<core::UnitName> names(int units) {
  std::vector<core::UnitName> all;
  for (int u = 0; u < units; ++u) all.push_back({0, u});
  return all;
}

TEST(Plant, SpinsAddUpToWhatWasAskedAndAreNotShort) {
  // 16 calls of 10 units could spin 160 times; 1.6 ms are 80 spins of 20 us: five units.
  const auto planted = spread_spins(graph_of(10, 16), names(10), 1.6e6);
  ASSERT_EQ(planted.size(), 5U);
  for (size_t i = 0; i < planted.size(); ++i) {
    EXPECT_EQ(planted[i].unit, (core::UnitName{0, static_cast<int>(2 * i)}));
    EXPECT_EQ(planted[i].spin_ns, 20000);
  }
}

TEST(Plant, ALittleWorkIsOneSpinAndMuchIsBehindEveryUnit) {
  const auto little = spread_spins(graph_of(10, 16), names(10), 1600);
  ASSERT_EQ(little.size(), 1U);
  EXPECT_EQ(little[0].spin_ns, 100);
  const auto much = spread_spins(graph_of(10, 16), names(10), 1.6e9);
  ASSERT_EQ(much.size(), 10U);
  EXPECT_EQ(much[9].spin_ns, 10'000'000);
}

TEST(Plant, WithoutUnitsNothingIsPlanted) {
  EXPECT_TRUE(spread_spins(graph_of(10, 16), {}, 1e6).empty());
}

TEST(Plant, TheIdleSideHasTheSameNodes) {
  const auto planted = spread_spins(graph_of(10, 1), names(2), 1e5);
  EXPECT_EQ(plant_request(planted, false).dump(),
            R"([{"spin_ns":0,"unit":[0,0]},{"spin_ns":0,"unit":[0,1]}])");
  EXPECT_EQ(plant_request(planted, true)[1]["spin_ns"], 50000);
}

}  // namespace
}  // namespace opledger::session
