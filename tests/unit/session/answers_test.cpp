// Divergences from scipy.stats.entropy(softmax(a), softmax(b)); base64 from the base64 program and RFC 4648.
#include "session/answers.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace opledger::session {
namespace {

TEST(Base64, DecodesTheVectorsOfTheStandard) {
  EXPECT_EQ(*decode_base64(""), "");
  EXPECT_EQ(*decode_base64("Zg=="), "f");
  EXPECT_EQ(*decode_base64("Zm8="), "fo");
  EXPECT_EQ(*decode_base64("Zm9vYmFy"), "foobar");
}

TEST(Base64, RefusesWhatIsNone) {
  for (const char* text : {"Zg", "Zg=", "Z===", "Zm9v====", "Zg==Zg==", "Zm9v YmF", "Zm9\nv"}) {
    EXPECT_FALSE(decode_base64(text)) << text;
  }
}

TEST(Logits, AreLittleEndianFloats) {
  // printf '\0\0\200\77\0\0\0\300' | base64
  const Result<std::vector<float>> row = decode_logits("AACAPwAAAMA=", 2);
  ASSERT_TRUE(row);
  EXPECT_EQ(*row, (std::vector<float>{1.0F, -2.0F}));
}

TEST(Logits, OfAnotherLengthAreAFailure) {
  EXPECT_FALSE(decode_logits("AACAPwAAAMA=", 3));
}

TEST(Answers, DivergenceIsThatOfTheSoftmaxes) {
  // a = [1,2,3], b = [3,2,1]: softmax(a) = .0900306, .2447285, .6652410; sum p ln(p/q) =
  // (.6652410-.0900306)*2.
  const auto agreement = compare_answers({{1, 2, 3}, {0, 5, 0}}, {{3, 2, 1}, {0, 5, 0}});
  ASSERT_TRUE(agreement);
  EXPECT_NEAR(agreement->kl_nats_mean, 1.1504208 / 2, 1e-6);
  EXPECT_DOUBLE_EQ(agreement->top1_agreement_ratio, 0.5);
}

TEST(Answers, AShiftOfAllLogitsChangesNothing) {
  const auto agreement = compare_answers({{1, 2, 3}}, {{501, 502, 503}});
  ASSERT_TRUE(agreement);
  EXPECT_NEAR(agreement->kl_nats_mean, 0, 1e-6);
  EXPECT_DOUBLE_EQ(agreement->top1_agreement_ratio, 1.0);
}

TEST(Answers, AreUnknownWhereTheyCannotBeCompared) {
  EXPECT_FALSE(compare_answers({}, {}));
  EXPECT_FALSE(compare_answers({{1, 2}}, {{1, 2, 3}}));
  EXPECT_FALSE(compare_answers({{1, 2}}, {{1, 2}, {1, 2}}));
  EXPECT_FALSE(compare_answers({{1, std::numeric_limits<float>::quiet_NaN()}}, {{1, 2}}));
}

}  // namespace
}  // namespace opledger::session
