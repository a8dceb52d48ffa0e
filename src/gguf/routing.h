// How popular each expert of a skeleton shall be, and the biases that make a router choose so.
// Pure arithmetic: knows no files.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace opledger::gguf {

/// uniform, or zipf with an exponent.
struct RoutingSpec {
  std::optional<double> zipf_exponent;  ///< empty: uniform
};

/// Reads "uniform" or "zipf:S" with S in (0, 4]. bad_input names what is accepted.
Result<RoutingSpec> parse_routing(std::string_view text);
/// The same text again.
std::string routing_text(const RoutingSpec& routing);

/// The share of tokens that shall select the expert of each rank (ranks 1, 2, ...): min(0.98, c /
/// rank^exponent) with c such that they sum to `used`. A token selects an expert at most once, so no share
/// can pass 1 and the head of a steep law is cut; 0.98 keeps the bias finite.
std::vector<double> zipf_inclusion(int experts, int used, double exponent);

/// Biases for which the best of (bias + standard normal noise), as many as `inclusion` sums to, select each
/// expert with about the probability given in `inclusion`: within 0.01 for 16 to 256 experts and exponents up
/// to 2. Probabilities must lie strictly between 0 and 1.
std::vector<double> selection_biases(std::span<const double> inclusion);

}  // namespace opledger::gguf
