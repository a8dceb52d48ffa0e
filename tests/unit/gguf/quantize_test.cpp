#include "gguf/quantize.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <string>

#include "dequantize.h"

namespace opledger::gguf {
namespace {

std::vector<std::byte> quantized(const std::string& type, const std::vector<float>& row) {
  const TensorType& t = *find_type(type);
  std::vector<std::byte> out(row.size() / t.block_weights * t.block_bytes);
  quantize_row(t, row, out);
  return out;
}

std::vector<double> round_trip(const std::string& type, const std::vector<float>& row) {
  return test::dequantized(type, quantized(type, row));
}

std::vector<float> gaussians(size_t n, float scale = 1) {
  std::mt19937 rng(11);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> row(n);
  for (float& x : row) x = normal(rng);
  return row;
}

double relative_rms_error(const std::string& type, const std::vector<float>& row) {
  const std::vector<double> back = round_trip(type, row);
  double error = 0;
  double size = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    error += (back[i] - row[i]) * (back[i] - row[i]);
    size += static_cast<double>(row[i]) * row[i];
  }
  return std::sqrt(error / size);
}

// Expected bits from Python: struct.pack('e', v).
TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(half_from_float(0.1F), 0x2E66);
  EXPECT_EQ(half_from_float(1.0F), 0x3C00);
  EXPECT_EQ(half_from_float(-2.0F), 0xC000);
  EXPECT_EQ(half_from_float(2049.0F), 0x6800);
  EXPECT_EQ(half_from_float(2051.0F), 0x6802);
  EXPECT_EQ(half_from_float(65519.0F), 0x7BFF);
  EXPECT_EQ(half_from_float(1.0F / 3), 0x3555);
}

TEST(Half, KeepsSubnormals) {
  EXPECT_EQ(half_from_float(0x1p-24F), 0x0001);
  EXPECT_EQ(half_from_float(0x1p-25F), 0x0000);
  EXPECT_EQ(half_from_float(3 * 0x1p-25F), 0x0002);
  EXPECT_EQ(half_from_float(0x1p-14F - 0x1p-26F), 0x0400);
  EXPECT_EQ(half_from_float(1e-5F), 0x00A8);
}

TEST(Half, OverflowsToInfinityAndKeepsNan) {
  EXPECT_EQ(half_from_float(65520.0F), 0x7C00);
  EXPECT_EQ(half_from_float(-1e9F), 0xFC00);
  EXPECT_EQ(half_from_float(std::nanf("")), 0x7E00);
}

TEST(Half, ComesBackUnchangedFromEveryFiniteValue) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    if ((bits >> 10 & 31U) == 31) continue;
    const auto half = static_cast<uint16_t>(bits);
    ASSERT_EQ(half_from_float(float_from_half(half)), half) << bits;
    const auto* const bytes = reinterpret_cast<const std::byte*>(&half);
    ASSERT_EQ(float_from_half(half), test::half_value(bytes)) << bits;
  }
}

TEST(Quantize, AcceptsTheSixFormatsOfSkeletons) {
  for (const char* name : {"f32", "f16", "q4_0", "q8_0", "q4_K", "q6_K"})
    EXPECT_TRUE(can_quantize(*find_type(name)));
  for (const char* name : {"q5_0", "q2_K", "bf16", "iq4_ks"}) EXPECT_FALSE(can_quantize(*find_type(name)));
}

// By hand: the extreme is 127, so d = 1 (0x3C00 as a half) and every weight is its own byte.
TEST(Quantize, WritesQ8BlocksByteForByte) {
  std::vector<float> row(32, 0);
  row[0] = 127;
  row[1] = -127;
  row[31] = 64;
  const std::vector<std::byte> b = quantized("q8_0", row);
  ASSERT_EQ(b.size(), 34U);
  EXPECT_EQ(test::u8(&b[0]), 0x00);
  EXPECT_EQ(test::u8(&b[1]), 0x3C);
  EXPECT_EQ(test::u8(&b[2]), 127);
  EXPECT_EQ(test::u8(&b[3]), 0x81);
  EXPECT_EQ(test::u8(&b[33]), 64);
}

// By hand: the extreme is -8, so d = 1, and weight x is stored as x + 8.
TEST(Quantize, WritesQ4BlocksByteForByte) {
  std::vector<float> row(32, 0);
  row[0] = -8;
  row[15] = 7;
  row[16] = 1;
  row[31] = -1;
  const std::vector<std::byte> b = quantized("q4_0", row);
  ASSERT_EQ(b.size(), 18U);
  EXPECT_EQ(test::u8(&b[1]), 0x3C);
  EXPECT_EQ(test::u8(&b[2]), 0x90);   // low half: -8 -> 0; high half: 1 -> 9
  EXPECT_EQ(test::u8(&b[17]), 0x7F);  // low half: 7 -> 15; high half: -1 -> 7
}

// Every bit of a format has to land where its definition says, or some weight comes back elsewhere.
TEST(Quantize, KeepsEachWeightAtItsPlace) {
  for (const char* type : {"q8_0", "q4_0", "q4_K", "q6_K", "f16", "f32"}) {
    for (size_t i = 0; i < 256; ++i) {
      std::vector<float> row(256, 0);
      row[i] = -1;
      const std::vector<double> back = round_trip(type, row);
      for (size_t j = 0; j < 256; ++j) ASSERT_NEAR(back[j], row[j], 0.02) << type << " " << i << " " << j;
    }
  }
}

TEST(Quantize, GivesEachSubBlockItsOwnScale) {
  for (const char* type : {"q4_K", "q6_K"}) {
    for (size_t sub = 0; sub < 8; ++sub) {
      std::vector<float> row = gaussians(256, 0.1F);
      for (size_t i = 32 * sub; i < 32 * (sub + 1); ++i) row[i] += i % 2 == 0 ? 3.0F : -2.0F;
      const std::vector<double> back = round_trip(type, row);
      for (size_t j = 0; j < 256; ++j) {
        const double bound = j / 32 == sub ? 0.25 : 0.06;
        ASSERT_NEAR(back[j], row[j], bound) << type << " " << sub << " " << j;
      }
    }
  }
}

TEST(Quantize, KeepsZerosZero) {
  for (const char* type : {"q8_0", "q4_0", "q4_K", "q6_K", "f16"}) {
    for (const double x : round_trip(type, std::vector<float>(256, 0))) ASSERT_EQ(x, 0) << type;
  }
}

// Half a step, plus what rounding the scale to half precision (2^-11) can move the largest weight.
TEST(Quantize, Q8ErrsByAtMostHalfAStep) {
  const std::vector<float> row = gaussians(32 * 200);
  const std::vector<double> back = round_trip("q8_0", row);
  for (size_t b = 0; b < row.size(); b += 32) {
    float extreme = 0;
    for (size_t i = b; i < b + 32; ++i) extreme = std::max(extreme, std::fabs(row[i]));
    for (size_t i = b; i < b + 32; ++i)
      ASSERT_LE(std::fabs(back[i] - row[i]), extreme * (0.5 / 127 + 0x1p-11));
  }
}

// Half a step; a whole one opposite the extreme, where there are only seven steps for eight.
TEST(Quantize, Q4ErrsByAtMostAStep) {
  const std::vector<float> row = gaussians(32 * 200);
  const std::vector<double> back = round_trip("q4_0", row);
  for (size_t b = 0; b < row.size(); b += 32) {
    float extreme = 0;
    for (size_t i = b; i < b + 32; ++i) extreme = std::max(extreme, std::fabs(row[i]));
    for (size_t i = b; i < b + 32; ++i) ASSERT_LE(std::fabs(back[i] - row[i]), extreme * (1.0 / 8 + 0x1p-10));
  }
}

// A step is range / 15. Rounding scale and minimum to six bits moves the top by 15 * (largest step) / 126
// plus (largest minimum) / 126.
TEST(Quantize, Q4kErrsByAtMostAStepOfItsSubBlock) {
  const std::vector<float> row = gaussians(256 * 50);
  const std::vector<double> back = round_trip("q4_K", row);
  for (size_t b = 0; b < row.size(); b += 256) {
    double step = 0;
    double depth = 0;
    for (size_t s = b; s < b + 256; s += 32) {
      const auto [low, high] =
          std::minmax_element(row.begin() + static_cast<long>(s), row.begin() + static_cast<long>(s) + 32);
      step = std::max(step, static_cast<double>(*high - *low) / 15);
      depth = std::max(depth, static_cast<double>(-*low));
    }
    const double bound = step * (0.5 + 15.0 / 126) + depth / 126 + 0.005;
    for (size_t i = b; i < b + 256; ++i) ASSERT_LE(std::fabs(back[i] - row[i]), bound);
  }
}

// Uniform rounding errs by step / sqrt(12) of a normal row's deviation. Mean extremes of 16 and 32 normal
// draws are 2.0 and 2.3 in magnitude, the mean range of 32 is 4.1 (tables of order statistics): q8_0 0.005,
// q6_K 0.018, q4_K 0.079, q4_0 0.083.
TEST(Quantize, ErrsAsMuchAsTheFormatsStepImplies) {
  const std::vector<float> row = gaussians(256 * 100);
  EXPECT_NEAR(relative_rms_error("q8_0", row), 0.0053, 0.001);
  EXPECT_NEAR(relative_rms_error("q6_K", row), 0.018, 0.003);
  EXPECT_NEAR(relative_rms_error("q4_K", row), 0.079, 0.01);
  EXPECT_NEAR(relative_rms_error("q4_0", row), 0.085, 0.01);
  EXPECT_LT(relative_rms_error("f16", row), 0x1p-11);
  EXPECT_EQ(relative_rms_error("f32", row), 0);
}

TEST(Quantize, WorksForSmallWeights) {
  const std::vector<float> row = gaussians(256 * 20, 0.02F);
  EXPECT_LT(relative_rms_error("q4_K", row), 0.09);
  EXPECT_LT(relative_rms_error("q6_K", row), 0.03) << "scales near the end of half precision";
}

}  // namespace
}  // namespace opledger::gguf
