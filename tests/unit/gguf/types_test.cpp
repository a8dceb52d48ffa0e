#include "gguf/types.h"

#include <gtest/gtest.h>
#include <limits>

namespace opledger::gguf {
namespace {

uint64_t bytes(const char* type, std::array<int64_t, 4> ne) {
  return tensor_bytes(*find_type(type), ne).value_or(0);
}

// Block sizes from ggml-common.h; iq4_ks from ik_llama.cpp: 4 bytes of scale before a row's blocks.
TEST(TensorType, KnowsTheSizesOfBothEngines) {
  EXPECT_EQ(bytes("f32", {7, 3, 1, 1}), 84U);
  EXPECT_EQ(bytes("q4_0", {64, 3, 1, 1}), 108U);
  EXPECT_EQ(bytes("q4_1", {64, 3, 1, 1}), 120U);
  EXPECT_EQ(bytes("q4_K", {512, 2, 2, 1}), 8 * 144U);
  EXPECT_EQ(bytes("q6_K", {256, 1, 1, 5}), 5 * 210U);
  EXPECT_EQ(bytes("mxfp4", {32, 1, 1, 1}), 17U);
  EXPECT_EQ(bytes("iq4_ks", {512, 3, 1, 1}), 3 * (4 + 2 * 136U));
}

// Four weights a byte and 32 bytes of scale for the whole tensor: 4096 / 4 + 32.
TEST(TensorType, CountsTheScaleOfTernaryTensorsOnce) {
  EXPECT_EQ(bytes("i2_s", {64, 64, 1, 1}), 1056U);
}

TEST(TensorType, IsFoundInAnyCaseAndById) {
  EXPECT_EQ(find_type("Q4_K")->id, 12U);
  EXPECT_EQ(find_type("q4_k")->id, 12U);
  EXPECT_EQ(find_type(12U)->name, "q4_K");
  EXPECT_EQ(find_type(212U)->name, "q4_k_r4");
  EXPECT_EQ(find_type("q4_"), nullptr);
  EXPECT_EQ(find_type(4U), nullptr) << "removed from the format long ago";
  EXPECT_EQ(find_type(4000000000U), nullptr);
}

TEST(TensorType, HasNoBytesForAnImpossibleShape) {
  const TensorType& q8 = *find_type("q8_0");
  EXPECT_EQ(tensor_bytes(q8, {33, 1, 1, 1}), std::nullopt);
  EXPECT_EQ(tensor_bytes(q8, {32, 0, 1, 1}), std::nullopt);
  EXPECT_EQ(tensor_bytes(q8, {32, -1, 1, 1}), std::nullopt);
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(tensor_bytes(*find_type("f64"), {kMax, 1, 1, 1}), std::nullopt);
  EXPECT_EQ(tensor_bytes(*find_type("i8"), {kMax, kMax, kMax, kMax}), std::nullopt);
  EXPECT_EQ(tensor_bytes(*find_type("i8"), {kMax, 1, 1, 1}), static_cast<uint64_t>(kMax));
}

}  // namespace
}  // namespace opledger::gguf
