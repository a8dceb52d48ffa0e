// What is left to know, worked out by hand; and the stopping rule against simulated launches whose truth is
// known.
#include "core/ledger/precision.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <random>

#include "core/stats/interval.h"
#include "synthetic_record.h"

namespace opledger::core {
namespace {

Measured known(double low, double high) {
  return {(low + high) / 2, {{low, high}}};
}

Row row(const std::string& scope, double low, double high) {
  Row out;
  out.scope = scope;
  out.gap = known(low, high);
  return out;
}

/// Passes of 110 and 90 ms: 1% of the pass is 1 ms.
WorkloadLedger ledger_of(std::vector<Row> rows, Measured gap = known(19.5, 20.5)) {
  WorkloadLedger ledger;
  ledger.a.graph = known(109, 111);
  ledger.b.graph = known(89, 91);
  ledger.a.launch_groups = ledger.b.launch_groups = 8;
  ledger.gap = std::move(gap);
  ledger.rows = std::move(rows);
  return ledger;
}

using Names = std::vector<std::string>;

TEST(Precision, IsOfThePassAndOfTheGapFirst) {
  EXPECT_EQ(not_known_to(ledger_of({}, known(19.0, 21.0)), 0.01), Names{});
  EXPECT_EQ(not_known_to(ledger_of({}, known(18.9, 21.0)), 0.01), Names{"the gap"});
  EXPECT_EQ(not_known_to(ledger_of({}, known(18.9, 21.0)), 0.011), Names{});
}

TEST(Precision, WhatHasNoIntervalIsNotKnown) {
  WorkloadLedger ledger = ledger_of({row("dense", 9, 10)}, {20.0, std::nullopt});
  ledger.rows.push_back({});
  ledger.rows.back().scope = "attention";
  EXPECT_EQ(not_known_to(ledger, 0.01), (Names{"the gap", "attention"}));
  ledger.a.graph = {};
  EXPECT_EQ(not_known_to(ledger, 0.01), Names{"the gap"});
}

TEST(Precision, AsksOnlyOfRowsThatCouldBeAmongTheTwoLargest) {
  // At the least 12, 5, 0 and 0: whatever stays below 5 is neither first nor second.
  const WorkloadLedger ledger =
      ledger_of({row("dense", 12, 16), row("attention", -5.5, -5), row("norm", -1, 4.9), row("rope", -6, 1)});
  EXPECT_EQ(not_known_to(ledger, 0.01), (Names{"dense", "rope"}));
  EXPECT_EQ(not_known_to(ledger, 0.02), Names{"rope"});
  EXPECT_EQ(not_known_to(ledger, 0.04), Names{});
}

TEST(Precision, EndsASessionAtPlannedLooksOnly) {
  Ledger ledger;
  EXPECT_FALSE(is_precise_enough(ledger, 0.01));
  ledger.workloads = {ledger_of({row("dense", 12, 13)}), ledger_of({row("dense", 12, 13)})};
  EXPECT_TRUE(is_precise_enough(ledger, 0.01));
  for (const int groups : {3, 7, 9, 10}) {
    ledger.workloads[0].a.launch_groups = ledger.workloads[0].b.launch_groups = groups;
    EXPECT_FALSE(is_precise_enough(ledger, 0.01)) << groups;
  }
  ledger.workloads[0].a.launch_groups = ledger.workloads[0].b.launch_groups = 11;
  EXPECT_TRUE(is_precise_enough(ledger, 0.01));
  ledger.workloads[1].is_contaminated = true;
  EXPECT_FALSE(is_precise_enough(ledger, 0.01));
  ledger.workloads[1] = ledger_of({row("dense", 12, 16)});
  EXPECT_FALSE(is_precise_enough(ledger, 0.01));
}

TEST(Precision, ThatWasNotReachedIsSaidFromTheRecord) {
  testing::PlantedSession session = testing::two_engines();
  Record record = session.record();
  const auto caveats = [&] {
    const auto ledger = analyse_scoped(record, testing::planted_scoping(2), {});
    return ledger ? ledger->workloads.front().not_solid : std::vector<std::string>{};
  };
  const auto is_said = [&] {
    for (const std::string& text : caveats())
      if (text.find("not known to the") == 0) return true;
    return false;
  };
  EXPECT_FALSE(is_said());
  record.header.precision_ratio = 0.5;
  EXPECT_FALSE(is_said());
  record.header.precision_ratio = 1e-6;
  EXPECT_TRUE(is_said());
}

/// What a launch of one engine lies off its truth (log): its own noise, and what the machine does to both.
struct Shape {
  std::string name;
  std::function<double(std::mt19937&)> own;
  std::function<double(int launch)> shared;
};

std::vector<Shape> shapes() {
  const auto none = [](int) { return 0.0; };
  const auto normal = [](std::mt19937& random) { return std::normal_distribution<>(0, 0.01)(random); };
  const auto skewed = [](std::mt19937& random) { return std::exponential_distribution<>(100)(random); };
  const auto heavy = [](std::mt19937& random) { return 0.007 * std::student_t_distribution<>(4)(random); };
  const auto bursty = [normal](std::mt19937& random) {
    return normal(random) + (std::uniform_real_distribution<>()(random) < 0.1 ? 0.04 : 0);
  };
  return {{"normal", normal, none},
          {"skewed", skewed, none},
          {"heavy-tailed", heavy, none},
          {"drifting", normal, [](int launch) { return 0.03 * launch; }},
          {"bursty", bursty, none}};
}

/// Launches until a planned look finds the ratio known well enough, or until the last look.
bool holds_truth(const Shape& shape, double precision_ratio, std::mt19937& random) {
  constexpr double kTruth = 1.02;
  std::vector<double> a;
  std::vector<double> b;
  for (const int look : kPrecisionLooks) {
    while (static_cast<int>(a.size()) < look) {
      const double shared = shape.shared(static_cast<int>(a.size()));
      a.push_back(100 * kTruth * std::exp(shared + shape.own(random)));
      b.push_back(100 * std::exp(shared + shape.own(random)));
    }
    const Interval interval = *paired_ratio_interval(a, b)->interval;
    if (interval.half_width() <= precision_ratio || look == kPrecisionLooks.back())
      return interval.holds(kTruth);
  }
  return false;
}

TEST(Precision, AnIntervalHoldsTheTruthInNineteenOfTwentyWhereverItEndsTheSession) {
  constexpr int kTrials = 6000;
  for (const Shape& shape : shapes()) {
    for (const double precision_ratio : {0.005, 0.008, 0.012}) {
      std::mt19937 random(7);
      int held = 0;
      for (int i = 0; i < kTrials; ++i) held += holds_truth(shape, precision_ratio, random) ? 1 : 0;
      const double coverage = static_cast<double>(held) / kTrials;
      EXPECT_GE(coverage, 0.93) << shape.name << " at " << precision_ratio;
      EXPECT_LE(coverage, 0.98) << shape.name << " at " << precision_ratio;
    }
  }
}

}  // namespace
}  // namespace opledger::core
