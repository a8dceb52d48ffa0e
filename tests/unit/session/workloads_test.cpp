// Names and counts by hand; the generator against the published first outputs of SplitMix64 with seed 0
// (e220a8397b1dcdaf, 6e789e6aa1b965f4, 06c45d188009454f).
#include "session/workloads.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <vector>

#include "session/random.h"

namespace opledger::session {
namespace {

TEST(Random, IsSplitMix64) {
  Random random(0);
  EXPECT_EQ(random.next(), 0xe220a8397b1dcdafULL);
  EXPECT_EQ(random.next(), 0x6e789e6aa1b965f4ULL);
  EXPECT_EQ(random.next(), 0x06c45d188009454fULL);
}

TEST(Random, ShufflingKeepsEveryItem) {
  std::vector<int> items(20);
  std::iota(items.begin(), items.end(), 0);
  std::vector<int> shuffled = items;
  Random(3).shuffle(shuffled);
  EXPECT_NE(shuffled, items);
  std::sort(shuffled.begin(), shuffled.end());
  EXPECT_EQ(shuffled, items);
}

TEST(SeededIds, AreTheSameForTheSameSeedAndSpreadOverTheVocabulary) {
  const std::vector<int64_t> ids = seeded_ids(7, 20000, 10);
  EXPECT_EQ(ids, seeded_ids(7, 20000, 10));
  EXPECT_NE(ids, seeded_ids(8, 20000, 10));
  for (int64_t id = 0; id < 10; ++id) {
    // 2000 expected, standard deviation 42: 6 of them either way.
    EXPECT_NEAR(static_cast<double>(std::count(ids.begin(), ids.end(), id)), 2000, 255);
  }
}

TEST(Workloads, CombineEveryDecodeWithEveryDepth) {
  const WorkloadRequest request{{512, 0}, {4, 16}, {64, 128}};
  ASSERT_EQ(*needed_tokens(request), 512);
  std::vector<int64_t> ids(512);
  std::iota(ids.begin(), ids.end(), 0);
  const std::vector<Workload> made = make_workloads(request, ids, "seeded ids");
  ASSERT_EQ(made.size(), 5U);
  EXPECT_EQ(made[0].facts.id, "pp512");
  EXPECT_EQ(made[1].facts.id, "tg4@64");
  EXPECT_EQ(made[4].facts.id, "tg16@128");
  EXPECT_EQ(made[4].facts.tokens_per_pass, 16);
  EXPECT_EQ(made[4].facts.depth_tokens, 128);
  EXPECT_EQ(made[4].prompt.size(), 128U);
  EXPECT_EQ(made[4].tokens.front(), 128);
  EXPECT_EQ(made[4].tokens.back(), 143);
}

TEST(Workloads, ADecodeNeedsItsDepthAndItsTokens) {
  EXPECT_EQ(*needed_tokens({{16}, {32}, {1024}}), 1056);
}

TEST(Workloads, TheSameTwiceIsRunOnce) {
  const std::vector<int64_t> ids(8);
  EXPECT_EQ(make_workloads({{8, 8}, {}, {}}, ids, "").size(), 1U);
}

TEST(Workloads, NoneAtAllIsSaid) {
  const Result<int64_t> needed = needed_tokens({{0}, {}, {64}});
  ASSERT_FALSE(needed);
  EXPECT_EQ(needed.error().kind, Error::Kind::kBadInput);
}

TEST(Workloads, ADecodeAtDepthZeroIsRefused) {
  EXPECT_FALSE(needed_tokens({{}, {16}, {0}}));
}

TEST(Workloads, SpeakTheProtocolsForm) {
  const std::vector<Workload> made = make_workloads({{2}, {1}, {2}}, {5, 6, 7}, "");
  EXPECT_EQ(made[0].to_json().dump(), R"({"id":"pp2","kind":"prefill","tokens":[5,6]})");
  EXPECT_EQ(made[1].to_json().dump(), R"({"id":"tg1@2","kind":"decode","prompt":[5,6],"tokens":[7]})");
}

}  // namespace
}  // namespace opledger::session
