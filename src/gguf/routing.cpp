// A bias moves the expert's chance through the threshold that the other experts set. That threshold is
// sampled, and the chance is then computed in closed form against each sample, so rare experts come out right
// too.
#include "gguf/routing.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <functional>
#include <numbers>
#include <numeric>

#include "core/base/check.h"
#include "gguf/random.h"

namespace opledger::gguf {
namespace {

constexpr double kMaxInclusion = 0.98;
constexpr double kMaxExponent = 4;
// Within 1% of every share: checked by the tests against samples of their own.
constexpr int kSamples = 1024;
constexpr int kIterations = 16;

double normal_cdf(double x) {
  return 0.5 * std::erfc(-x / std::numbers::sqrt2);
}

double normal_quantile(double p) {
  double low = -12;
  double high = 12;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (normal_cdf(middle) < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

/// Chance of each expert to be selected, for biases `b`, averaged over the rows of `noise`.
std::vector<double> chances(std::span<const double> b, size_t used, std::span<const double> noise) {
  const size_t experts = b.size();
  std::vector<double> sum(experts, 0.0);
  std::vector<double> score(experts);
  std::vector<double> sorted;
  for (int s = 0; s < kSamples; ++s) {
    for (size_t e = 0; e < experts; ++e) score[e] = b[e] + noise[static_cast<size_t>(s) * experts + e];
    sorted = score;
    std::partial_sort(sorted.begin(), sorted.begin() + static_cast<long>(used) + 1, sorted.end(),
                      std::greater<>());
    // An expert must beat the used-th of the others: the next one down when it is among the best itself.
    for (size_t e = 0; e < experts; ++e) {
      const double threshold = score[e] >= sorted[used - 1] ? sorted[used] : sorted[used - 1];
      sum[e] += normal_cdf(b[e] - threshold);
    }
  }
  for (double& p : sum) p /= kSamples;
  return sum;
}

}  // namespace

Result<RoutingSpec> parse_routing(std::string_view text) {
  const Error refused = Error::bad_input(fmt::format(
      "--routing {}: give uniform, or zipf:S with an exponent S above 0 and at most {}, such as zipf:1.0",
      text, kMaxExponent));
  if (text == "uniform") return RoutingSpec{};
  constexpr std::string_view kZipf = "zipf:";
  if (!text.starts_with(kZipf)) return refused;
  const std::string number(text.substr(kZipf.size()));
  if (number.empty() || number.find_first_not_of("0123456789.") != std::string::npos) return refused;
  char* end = nullptr;
  const double exponent = std::strtod(number.c_str(), &end);
  if (*end != '\0' || !(exponent > 0) || exponent > kMaxExponent) return refused;
  return RoutingSpec{exponent};
}

std::string routing_text(const RoutingSpec& routing) {
  return routing.zipf_exponent ? fmt::format("zipf:{}", *routing.zipf_exponent) : "uniform";
}

std::vector<double> zipf_inclusion(int experts, int used, double exponent) {
  OPLEDGER_CHECK(used > 0 && used < experts);
  std::vector<double> weight(static_cast<size_t>(experts));
  for (size_t r = 0; r < weight.size(); ++r) weight[r] = std::pow(static_cast<double>(r + 1), -exponent);
  // Ranks are in falling order, so the ones that reach the cap come first: cap one more until the rest fits.
  // The loop ends, because with all but `used` capped the rest would be asked for less than nothing.
  std::vector<double> inclusion(weight.size());
  for (size_t capped = 0;; ++capped) {
    const double rest = std::accumulate(weight.begin() + static_cast<long>(capped), weight.end(), 0.0);
    const double c = (used - kMaxInclusion * static_cast<double>(capped)) / rest;
    if (c * weight[capped] > kMaxInclusion) continue;
    for (size_t r = 0; r < weight.size(); ++r) inclusion[r] = r < capped ? kMaxInclusion : c * weight[r];
    return inclusion;
  }
}

std::vector<double> selection_biases(std::span<const double> inclusion, int used, uint64_t seed) {
  OPLEDGER_CHECK(used > 0 && static_cast<size_t>(used) < inclusion.size());
  detail::Random random(seed);
  std::vector<double> noise(inclusion.size() * kSamples);
  for (double& n : noise) n = random.gaussian();
  std::vector<double> target(inclusion.size());
  std::transform(inclusion.begin(), inclusion.end(), target.begin(), normal_quantile);
  std::vector<double> biases = target;
  for (int i = 0; i < kIterations; ++i) {
    const std::vector<double> now = chances(biases, static_cast<size_t>(used), noise);
    for (size_t e = 0; e < biases.size(); ++e) biases[e] += target[e] - normal_quantile(now[e]);
  }
  return biases;
}

}  // namespace opledger::gguf
