#include "gguf/routing.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

namespace opledger::gguf {
namespace {

TEST(Routing, IsReadAndWrittenAlike) {
  EXPECT_EQ(routing_text(*parse_routing("uniform")), "uniform");
  EXPECT_EQ(routing_text(*parse_routing("zipf:1.2")), "zipf:1.2");
  EXPECT_EQ(*parse_routing("zipf:1.0")->zipf_exponent, 1.0);
}

TEST(Routing, IsRefusedInOneLineThatSaysWhatToGive) {
  for (const char* text : {"", "zipf", "zipf:", "zipf:0", "zipf:-1", "zipf:5", "zipf:1x", "zipf:1.2.3",
                           "zipf:nan", "zipf:inf", "Uniform", "zipf: 1"}) {
    const Result<RoutingSpec> r = parse_routing(text);
    ASSERT_FALSE(r) << text;
    EXPECT_EQ(r.error().kind, Error::Kind::kBadInput);
    EXPECT_NE(r.error().message.find("zipf:S"), std::string::npos);
  }
}

// Computed apart in Python: c is such that min(0.98, c / r^s) sums to 8.
TEST(ZipfInclusion, FollowsTheLawBelowTheCap) {
  const std::vector<double> p = zipf_inclusion(64, 8, 1.0);
  EXPECT_NEAR(p[0], 0.98, 1e-12);
  EXPECT_NEAR(p[1], 0.937527, 1e-6);
  EXPECT_NEAR(p[2], 0.625018, 1e-6);
  EXPECT_NEAR(p[63], 0.029298, 1e-6);
  const std::vector<double> mild = zipf_inclusion(64, 8, 0.5);
  EXPECT_NEAR(mild[0], 0.547868, 1e-6);
  EXPECT_NEAR(mild[63], 0.068483, 1e-6);
  const std::vector<double> steep = zipf_inclusion(256, 8, 2.0);
  EXPECT_NEAR(steep[3], 0.98, 1e-12);
  EXPECT_NEAR(steep[4], 0.750606, 1e-6);
  EXPECT_NEAR(steep[255], 0.00028633, 1e-8);
}

TEST(ZipfInclusion, SumsToTheExpertsUsed) {
  for (const int experts : {16, 64, 512}) {
    for (const double s : {0.1, 1.0, 4.0}) {
      const std::vector<double> p = zipf_inclusion(experts, 8, s);
      EXPECT_NEAR(std::accumulate(p.begin(), p.end(), 0.0), 8.0, 1e-9);
    }
  }
}

/// Shares of `samples` draws in which each expert is among the `used` best: the standard library's generator
/// and sort, nothing of ours.
std::vector<double> simulated(const std::vector<double>& biases, size_t used, int samples) {
  std::mt19937_64 rng(123);
  std::normal_distribution<double> normal;
  std::vector<double> share(biases.size());
  std::vector<std::pair<double, size_t>> score(biases.size());
  for (int s = 0; s < samples; ++s) {
    for (size_t e = 0; e < biases.size(); ++e) score[e] = {biases[e] + normal(rng), e};
    std::nth_element(score.begin(), score.begin() + static_cast<long>(used), score.end(), std::greater<>());
    for (size_t k = 0; k < used; ++k) share[score[k].second] += 1.0 / samples;
  }
  return share;
}

// Tolerance: what the header promises, plus three standard errors of the simulation.
TEST(SelectionBiases, MakeEachExpertAsPopularAsAsked) {
  for (const int experts : {16, 64}) {
    for (const double s : {0.5, 1.0, 2.0}) {
      constexpr int kSamples = 20000;
      const std::vector<double> wanted = zipf_inclusion(experts, 8, s);
      const std::vector<double> got = simulated(selection_biases(wanted), 8, kSamples);
      for (size_t e = 0; e < wanted.size(); ++e) {
        const double error = 3 * std::sqrt(wanted[e] * (1 - wanted[e]) / kSamples) + 0.01;
        EXPECT_NEAR(got[e], wanted[e], error) << experts << " experts, exponent " << s << ", rank " << e + 1;
      }
    }
  }
}

// Quantiles of the standard normal distribution from printed tables.
TEST(SelectionBiases, AreQuantilesOfTheNormalDistribution) {
  const std::vector<double> b = selection_biases(std::vector<double>{0.5, 0.975, 0.025, 0.98});
  EXPECT_NEAR(b[0], 0, 1e-9);
  EXPECT_NEAR(b[1], 1.959964, 1e-6);
  EXPECT_NEAR(b[2], -1.959964, 1e-6);
  EXPECT_NEAR(b[3], 2.053749, 1e-6);
}

}  // namespace
}  // namespace opledger::gguf
