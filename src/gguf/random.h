// Seeded numbers that are the same on every machine and standard library; the standard distributions are not.
// Not for secrets.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

namespace opledger::gguf::detail {

/// A splitmix64 stream (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  /// A stream of its own for each name, so that one tensor's weights do not depend on how many came before.
  Random(uint64_t seed, std::string_view name) : state_(seed) {
    for (const char c : name) state_ = next() ^ static_cast<unsigned char>(c);
  }

  uint64_t next() {
    state_ += 0x9E3779B97F4A7C15ULL;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }

  /// Uniform in (0, 1].
  double uniform() { return (static_cast<double>(next() >> 11) + 1.0) * 0x1.0p-53; }

  /// Uniform in [0, bound). The bias of at most bound / 2^64 does not matter here.
  uint64_t below(uint64_t bound) { return next() % bound; }

  /// Standard normal (Box and Muller, 1958).
  double gaussian() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    const double radius = std::sqrt(-2.0 * std::log(uniform()));
    const double angle = 2.0 * std::numbers::pi * uniform();
    spare_ = radius * std::sin(angle);
    has_spare_ = true;
    return radius * std::cos(angle);
  }

 private:
  uint64_t state_;
  double spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace opledger::gguf::detail
