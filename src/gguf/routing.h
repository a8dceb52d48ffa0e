// How popular each expert of a skeleton shall be, and the biases that make a router choose so.
// Pure arithmetic: knows no files.
#pragma once

#include <cstdint>
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

/// Biases for which the `used` largest of (bias + standard normal noise) select each expert with the
/// probability given in `inclusion`, whose sum must be `used`. Found by iteration over seeded samples.
std::vector<double> selection_biases(std::span<const double> inclusion, int used, uint64_t seed);

}  // namespace opledger::gguf
