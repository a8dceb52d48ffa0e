// Each block is quantized against the scale as it is stored (rounded to half precision, or to six or eight
// bits), not as it was computed: otherwise the rounding of the scale would add to every weight's error.
#include "gguf/quantize.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/base/check.h"

namespace opledger::gguf {
namespace {

constexpr uint32_t kTypeF32 = 0, kTypeF16 = 1, kTypeQ4Zero = 2, kTypeQ8Zero = 8, kTypeQ4K = 12, kTypeQ6K = 14;
constexpr size_t kSmallBlock = 32;
constexpr size_t kSuperBlock = 256;

using Bytes = std::span<std::byte>;
using Floats = std::span<const float>;

void put_half(Bytes out, uint16_t half) {
  std::memcpy(out.data(), &half, sizeof half);
}

std::byte byte_of(int value) {
  return static_cast<std::byte>(static_cast<uint8_t>(value));
}

int rounded(float value, int low, int high) {
  return std::clamp(static_cast<int>(std::lrintf(value)), low, high);
}

float inverse(float scale) {
  return scale != 0 ? 1 / scale : 0;
}

/// The value of largest magnitude, with its sign.
float extreme(Floats block) {
  float found = 0;
  for (const float x : block) {
    if (std::fabs(x) > std::fabs(found)) found = x;
  }
  return found;
}

// half d; int8 q[32]. x = d q.
void quantize_q8_0(Floats block, Bytes out) {
  const uint16_t half = half_from_float(std::fabs(extreme(block)) / 127);
  const float scale = inverse(float_from_half(half));
  put_half(out, half);
  for (size_t i = 0; i < kSmallBlock; ++i) out[2 + i] = byte_of(rounded(block[i] * scale, -127, 127));
}

// half d; nibbles q[32], weights 0 to 15 in the low halves. x = d (q - 8); the extreme gets q = 0.
void quantize_q4_0(Floats block, Bytes out) {
  const uint16_t half = half_from_float(extreme(block) / -8);
  const float scale = inverse(float_from_half(half));
  put_half(out, half);
  for (size_t i = 0; i < kSmallBlock / 2; ++i) {
    const int low = rounded(block[i] * scale, -8, 7) + 8;
    const int high = rounded(block[i + kSmallBlock / 2] * scale, -8, 7) + 8;
    out[2 + i] = byte_of(low | high << 4);
  }
}

// Eight scales and eight minima of six bits each in twelve bytes: four of each whole, the others split into
// four low bits of their own and two high bits on top of the first eight bytes.
std::array<uint8_t, 12> packed_scales(const std::array<int, 8>& scales, const std::array<int, 8>& minima) {
  std::array<uint8_t, 12> out{};
  for (size_t j = 0; j < 4; ++j) {
    out.at(j) = static_cast<uint8_t>(scales.at(j) | (scales.at(j + 4) >> 4) << 6);
    out.at(j + 4) = static_cast<uint8_t>(minima.at(j) | (minima.at(j + 4) >> 4) << 6);
    out.at(j + 8) = static_cast<uint8_t>((scales.at(j + 4) & 15) | (minima.at(j + 4) & 15) << 4);
  }
  return out;
}

// half d, half dmin; scales; nibbles q[256]. In sub-block j of 32: x = d scale_j q - dmin minimum_j.
void quantize_q4_k(Floats block, Bytes out) {
  constexpr size_t kSubBlocks = 8;
  std::array<float, kSubBlocks> step{};
  std::array<float, kSubBlocks> depth{};
  for (size_t j = 0; j < kSubBlocks; ++j) {
    const auto [low, high] = std::minmax_element(block.begin() + 32 * j, block.begin() + 32 * (j + 1));
    depth.at(j) = std::max(-*low, 0.0F);
    step.at(j) = std::max(*high + depth.at(j), 0.0F) / 15;
  }
  const uint16_t half_d = half_from_float(*std::max_element(step.begin(), step.end()) / 63);
  const uint16_t half_min = half_from_float(*std::max_element(depth.begin(), depth.end()) / 63);
  const float d = float_from_half(half_d);
  const float d_min = float_from_half(half_min);
  std::array<int, kSubBlocks> scales{};
  std::array<int, kSubBlocks> minima{};
  std::array<int, kSuperBlock> q{};
  for (size_t j = 0; j < kSubBlocks; ++j) {
    scales.at(j) = rounded(step.at(j) * inverse(d), 0, 63);
    minima.at(j) = rounded(depth.at(j) * inverse(d_min), 0, 63);
    const float scale = inverse(d * static_cast<float>(scales.at(j)));
    const float shift = d_min * static_cast<float>(minima.at(j));
    for (size_t i = 32 * j; i < 32 * (j + 1); ++i) q.at(i) = rounded((block[i] + shift) * scale, 0, 15);
  }
  put_half(out, half_d);
  put_half(out.subspan(2), half_min);
  const std::array<uint8_t, 12> packed = packed_scales(scales, minima);
  std::memcpy(out.data() + 4, packed.data(), packed.size());
  for (size_t i = 0; i < kSuperBlock / 2; ++i) {
    const size_t low = i / 32 * 64 + i % 32;
    out[16 + i] = byte_of(q.at(low) | q.at(low + 32) << 4);
  }
}

// low nibbles [128], high bit pairs [64], int8 scales[16]; half d. In sub-block j of 16: x = d scale_j (q -
// 32).
void quantize_q6_k(Floats block, Bytes out) {
  constexpr size_t kSubBlocks = 16;
  std::array<float, kSubBlocks> step{};
  float largest = 0;
  for (size_t j = 0; j < kSubBlocks; ++j) {
    step.at(j) = extreme(block.subspan(16 * j, 16)) / -32;
    largest = std::max(largest, std::fabs(step.at(j)));
  }
  const uint16_t half = half_from_float(largest / 127);
  const float d = float_from_half(half);
  std::array<int, kSuperBlock> q{};
  for (size_t j = 0; j < kSubBlocks; ++j) {
    const int stored = rounded(step.at(j) * inverse(d), -127, 127);
    out[192 + j] = byte_of(stored);
    const float scale = inverse(d * static_cast<float>(stored));
    for (size_t i = 16 * j; i < 16 * (j + 1); ++i) q.at(i) = rounded(block[i] * scale, -32, 31) + 32;
  }
  for (size_t i = 0; i < 64; ++i) {
    const size_t base = i / 32 * 128 + i % 32;
    const int a = q.at(base), b = q.at(base + 32), c = q.at(base + 64), e = q.at(base + 96);
    const size_t low = i / 32 * 64 + i % 32;
    out[low] = byte_of((a & 15) | (c & 15) << 4);
    out[low + 32] = byte_of((b & 15) | (e & 15) << 4);
    out[128 + i] = byte_of(a >> 4 | (b >> 4) << 2 | (c >> 4) << 4 | (e >> 4) << 6);
  }
  put_half(out.subspan(208), half);
}

void quantize_f16(Floats block, Bytes out) {
  put_half(out, half_from_float(block[0]));
}

using BlockFunction = void (*)(Floats, Bytes);

BlockFunction block_function(uint32_t id) {
  switch (id) {
    case kTypeF16:
      return quantize_f16;
    case kTypeQ4Zero:
      return quantize_q4_0;
    case kTypeQ8Zero:
      return quantize_q8_0;
    case kTypeQ4K:
      return quantize_q4_k;
    case kTypeQ6K:
      return quantize_q6_k;
    default:
      return nullptr;
  }
}

}  // namespace

uint16_t half_from_float(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000U);
  const float magnitude = std::fabs(value);
  // 65520 is halfway between the largest half and the next power of two: ties go to infinity.
  if (!(magnitude < 65520.0F)) return static_cast<uint16_t>(sign | (std::isnan(value) ? 0x7E00U : 0x7C00U));
  // Below 2^-14 halves are multiples of 2^-24. Scaling by a power of two is exact, so this rounds once.
  if (magnitude < 0x1.0p-14F)
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::lrintf(magnitude * 0x1.0p24F)));
  uint32_t m = std::bit_cast<uint32_t>(magnitude) - (112U << 23);
  m += 0xFFFU + ((m >> 13) & 1U);  // nearest even; a carry into the exponent is right
  return static_cast<uint16_t>(sign | (m >> 13));
}

float float_from_half(uint16_t half) {
  const uint32_t sign = (half & 0x8000U) << 16;
  const uint32_t exponent = (half >> 10) & 31U;
  const uint32_t fraction = half & 0x3FFU;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1.0p-24F;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  const uint32_t wide = exponent == 31 ? 255U : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

bool can_quantize(const TensorType& type) {
  return type.id == kTypeF32 || block_function(type.id) != nullptr;
}

void quantize_row(const TensorType& type, std::span<const float> row, std::span<std::byte> out) {
  OPLEDGER_CHECK(can_quantize(type));
  OPLEDGER_CHECK(row.size() % type.block_weights == 0);
  OPLEDGER_CHECK(out.size() == row.size() / type.block_weights * type.block_bytes);
  if (type.id == kTypeF32) {
    std::memcpy(out.data(), row.data(), out.size());
    return;
  }
  const BlockFunction quantize = block_function(type.id);
  for (size_t b = 0; b * type.block_weights < row.size(); ++b) {
    quantize(row.subspan(b * type.block_weights, type.block_weights),
             out.subspan(b * type.block_bytes, type.block_bytes));
  }
}

}  // namespace opledger::gguf
