// Reads weights back as ggml's format definitions say (ggml-common.h and the reference dequantizers), one
// weight at a time and with no code in common with src/gguf: what the quantizers are tested against.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace opledger::gguf::test {

inline double half_value(const std::byte* at) {
  uint16_t bits = 0;
  std::memcpy(&bits, at, 2);
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

inline int u8(const std::byte* at) {
  return static_cast<int>(*at);
}
inline int i8(const std::byte* at) {
  return static_cast<int8_t>(*at);
}

inline double q8_0_weight(const std::byte* block, size_t i) {
  return half_value(block) * i8(block + 2 + i);
}

inline double q4_0_weight(const std::byte* block, size_t i) {
  const int pair = u8(block + 2 + i % 16);
  return half_value(block) * ((i < 16 ? pair & 15 : pair >> 4) - 8);
}

inline double q4_k_weight(const std::byte* block, size_t i) {
  const std::byte* const s = block + 4;
  const size_t j = i / 32;
  int scale = 0;
  int minimum = 0;
  if (j < 4) {
    scale = u8(s + j) & 63;
    minimum = u8(s + j + 4) & 63;
  } else {
    scale = (u8(s + j + 4) & 15) | (u8(s + j - 4) >> 6) << 4;
    minimum = (u8(s + j + 4) >> 4) | (u8(s + j) >> 6) << 4;
  }
  const int pair = u8(block + 16 + j / 2 * 32 + i % 32);
  const int q = j % 2 == 0 ? pair & 15 : pair >> 4;
  return half_value(block) * scale * q - half_value(block + 2) * minimum;
}

inline double q6_k_weight(const std::byte* block, size_t i) {
  const size_t n = i / 128;
  const size_t quarter = i % 128 / 32;
  const size_t l = i % 32;
  const int low_pair = u8(block + 64 * n + l + (quarter % 2 == 1 ? 32 : 0));
  const int low = quarter < 2 ? low_pair & 15 : low_pair >> 4;
  const int high = u8(block + 128 + 32 * n + l) >> (2 * quarter) & 3;
  const int scale = i8(block + 192 + 8 * n + l / 16 + 2 * quarter);
  return half_value(block + 208) * scale * ((low | high << 4) - 32);
}

/// All weights of `bytes`, which hold whole blocks of `type`.
inline std::vector<double> dequantized(std::string_view type, std::span<const std::byte> bytes) {
  struct Format {
    std::string_view name;
    size_t weights;
    size_t bytes;
    double (*weight)(const std::byte*, size_t);
  };
  static constexpr Format kFormats[] = {
      {"q8_0", 32, 34, q8_0_weight},
      {"q4_0", 32, 18, q4_0_weight},
      {"q4_K", 256, 144, q4_k_weight},
      {"q6_K", 256, 210, q6_k_weight},
      {"f16", 1, 2, [](const std::byte* b, size_t) { return half_value(b); }},
      {"f32", 1, 4, [](const std::byte* b, size_t) {
         float f = 0;
         std::memcpy(&f, b, 4);
         return static_cast<double>(f);
       }}};
  std::vector<double> out;
  for (const Format& format : kFormats) {
    if (format.name != type) continue;
    for (size_t at = 0; at < bytes.size(); at += format.bytes) {
      for (size_t i = 0; i < format.weights; ++i) out.push_back(format.weight(bytes.data() + at, i));
    }
  }
  return out;
}

}  // namespace opledger::gguf::test
