// Boundaries against published ones, and the whole rule against simulated noise whose truth is known.
#include "core/stats/looks.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

namespace opledger::core {
namespace {

TEST(Looks, AreSixEachHalfAsMuchAgain) {
  EXPECT_EQ(next_look(0), 8);
  EXPECT_EQ(next_look(8), 12);
  EXPECT_EQ(next_look(60), 61);
  EXPECT_FALSE(next_look(61));
  EXPECT_FALSE(last_look(7));
  EXPECT_EQ(last_look(17), 12);
  EXPECT_EQ(last_look(100), 61);
}

TEST(Looks, EachIsWorthMoreThanBonferroniAndLessThanFiveInAHundred) {
  EXPECT_GT(kErrorOfLook, 0.05 / 6);
  EXPECT_LT(kErrorOfLook, 0.05);
}

TEST(Looks, AnIntervalIsWiderThanAtASingleLook) {
  const std::vector<double> samples{1, 2, 3, 4};
  // mean 2.5, s = 1.291, three degrees of freedom: t at 0.975 is 3.182, at 1 - 0.01306 / 2 it is 5.307 (its
  // distribution has a closed form).
  EXPECT_NEAR(interval_at_look(samples)->interval->half_width(), 5.307 * 1.2910 / 2, 0.002);
  EXPECT_NEAR(trimmed_mean_interval(samples)->interval->half_width(), 3.182 * 1.2910 / 2, 0.002);
}

using Noise = std::function<double(std::mt19937&, int run)>;

struct Shape {
  std::string name;
  Noise noise;  ///< of the logarithm of one run
};

// Standard deviations of about 3%. A drift slows both runs of a pair alike, a burst hits single runs.
std::vector<Shape> shapes() {
  return {{"normal", [](auto& random, int) { return std::normal_distribution(0.0, 0.03)(random); }},
          {"skewed", [](auto& random, int) { return std::exponential_distribution(1 / 0.03)(random); }},
          {"heavy tails", [](auto& random, int) { return 0.02 * std::student_t_distribution(3.0)(random); }},
          {"drifting",
           [](auto& random, int run) {
             return 0.2 * std::sin(run / 30.0) + std::normal_distribution(0.0, 0.02)(random);
           }},
          {"bursty", [](auto& random, int) {
             const bool is_hit = std::bernoulli_distribution(0.05)(random);
             return std::normal_distribution(0.0, 0.02)(random) + (is_hit ? 0.3 : 0.0);
           }}};
}

// Goes on until a look excludes 0, as whoever wants a verdict does; whether the interval held the truth then.
bool holds_truth(const Noise& noise, double truth, std::mt19937& random) {
  std::vector<double> samples;
  for (int run = 0; const std::optional<int> next = next_look(static_cast<int>(samples.size()));) {
    while (static_cast<int>(samples.size()) < *next) {
      // A B, B A: what drifts falls on both alike.
      const double first = noise(random, run++);
      const double second = noise(random, run++);
      samples.push_back(truth + (samples.size() % 2 == 0 ? first - second : second - first));
    }
    const Interval interval = *interval_at_look(samples)->interval;
    if (!interval.holds(0) || !next_look(*next)) return interval.holds(truth);
  }
  return false;
}

TEST(Looks, TheIntervalHoldsTheTruthInNineteenOfTwentyWhicheverLookEndsIt) {
  constexpr int kTrials = 2000;
  for (const Shape& shape : shapes()) {
    for (const double truth : {0.0, 0.02}) {
      std::mt19937 random(20);
      int held = 0;
      for (int i = 0; i < kTrials; ++i) held += holds_truth(shape.noise, truth, random) ? 1 : 0;
      const double coverage = static_cast<double>(held) / kTrials;
      EXPECT_GE(coverage, 0.93) << shape.name << ", truth " << truth;
    }
  }
}

}  // namespace
}  // namespace opledger::core
