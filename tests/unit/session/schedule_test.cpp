// Rounds and plans with costs in round figures; every expectation is worked out by hand in the test.
#include "session/schedule.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <vector>

namespace opledger::session {
namespace {

ArmPlan arm(const std::string& kind, double cost_ratio = 1.0) {
  ArmPlan plan;
  plan.id = kind;
  plan.kind = kind;
  plan.cost_ratio = cost_ratio;
  return plan;
}

const std::vector<ArmPlan> kArms{arm("baseline"), arm("price"), arm("stamp"), arm("empty"),
                                 arm("replay", 1.5)};

TEST(Round, PutsEveryArmBetweenTwoBaselines) {
  RoundOptions options;
  options.with_price = options.with_empty = true;
  Random random(5);
  const std::vector<ScheduleEntry> round = round_of(kArms, options, random);
  ASSERT_EQ(round.size(), 9U);
  for (size_t i = 0; i < round.size(); i += 2) EXPECT_EQ(round[i].arm, "baseline");
  std::set<std::string> others;
  for (size_t i = 1; i < round.size(); i += 2) others.insert(round[i].arm);
  EXPECT_EQ(others, (std::set<std::string>{"price", "stamp", "empty", "replay"}));
}

TEST(Round, MeasuresThePriceBeforeAnythingItIsTakenOff) {
  RoundOptions options;
  options.with_price = options.with_empty = true;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    EXPECT_EQ(round_of(kArms, options, random)[1].arm, "price");
  }
}

TEST(Round, LeavesPriceAndEmptyToTheFirstOfAGroup) {
  Random random(1);
  for (const ScheduleEntry& entry : round_of(kArms, RoundOptions{}, random)) {
    EXPECT_NE(entry.arm, "price");
    EXPECT_NE(entry.arm, "empty");
  }
}

TEST(Round, StampsComeAgainForEveryThreeReplays) {
  const auto stamps_among = [](size_t replays) {
    std::vector<ArmPlan> arms{arm("baseline"), arm("stamp")};
    for (size_t i = 0; i < replays; ++i) {
      arms.push_back(arm("replay"));
      arms.back().copies = 1;
    }
    Random random(1);
    const std::vector<ScheduleEntry> round = round_of(arms, RoundOptions{}, random);
    return std::count_if(round.begin(), round.end(), [](const ScheduleEntry& e) { return e.arm == "stamp"; });
  };
  EXPECT_EQ(stamps_among(0), 1);
  EXPECT_EQ(stamps_among(2), 1);
  EXPECT_EQ(stamps_among(3), 2);
  EXPECT_EQ(stamps_among(7), 3);
}

TEST(Round, OrderOfArmsIsRandom) {
  std::set<std::string> first;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    first.insert(round_of(kArms, RoundOptions{}, random)[1].arm);
  }
  EXPECT_EQ(first, (std::set<std::string>{"stamp", "replay"}));
}

TEST(Round, ATightOneSparesTheBaselinesInBetween) {
  RoundOptions options;
  options.is_tight = options.with_price = true;
  Random random(1);
  const std::vector<ScheduleEntry> round =
      round_of({arm("baseline"), arm("price"), arm("stamp")}, options, random);
  ASSERT_EQ(round.size(), 4U);
  EXPECT_EQ(round[0].arm, "baseline");
  EXPECT_EQ(round[1].arm, "price");
  EXPECT_EQ(round[2].arm, "stamp");
  EXPECT_EQ(round[3].arm, "baseline");
}

TEST(Round, CostCountsEveryPass) {
  RoundOptions options;
  options.pass_ns = 1e8;  // longer than a block: one pass each, and four arms make a stint of a second
  // baseline, stamp, baseline, replay (1.5), baseline
  EXPECT_DOUBLE_EQ(round_cost_ns(kArms, options), 5.5e8);
  options.pass_ns = 1e9;  // every arm is a stint of its own: the baseline between them is measured twice
  EXPECT_DOUBLE_EQ(round_cost_ns(kArms, options), 6.5e9);
  options.pass_ns = 1e8;
  options.is_tight = true;
  options.with_price = true;
  // baseline, price, stamp, replay, baseline
  EXPECT_DOUBLE_EQ(round_cost_ns(kArms, options), 5.5e8);
}

TEST(Stints, LastAboutASecond) {
  EXPECT_EQ(arms_per_stint(1e8), 4);  // nine blocks
  EXPECT_EQ(arms_per_stint(3e8), 1);
  EXPECT_EQ(arms_per_stint(4e9), 1);
  EXPECT_EQ(arms_per_stint(1e6), 8);
}

TEST(Stints, BeginAndEndWithABaselineAndLoseNothing) {
  Random random(1);
  const std::vector<ScheduleEntry> whole = round_of(kArms, RoundOptions{}, random);
  const std::vector<Stint> stints = stints_of(whole, 1);
  ASSERT_EQ(stints.size(), 2U);
  for (const Stint& stint : stints) {
    ASSERT_EQ(stint.size(), 3U);
    EXPECT_EQ(stint.front().arm, "baseline");
    EXPECT_EQ(stint.back().arm, "baseline");
  }
  EXPECT_EQ(stints[0][1].arm, whole[1].arm);
  EXPECT_EQ(stints[1][1].arm, whole[3].arm);
  EXPECT_EQ(stints_of(whole, 2).size(), 1U);
  EXPECT_EQ(stints_of(whole, 2).front().size(), whole.size());
}

TEST(Block, LastsSomeSixtyMilliseconds) {
  EXPECT_EQ(passes_per_block(1.7e9), 1);
  EXPECT_EQ(passes_per_block(30e6), 2);
  EXPECT_EQ(passes_per_block(25e6), 3);
  EXPECT_EQ(passes_per_block(1e6), 8);
}

TEST(Verify, StartsFromTheBaseline) {
  const std::vector<ScheduleEntry> schedule = verify_of({arm("baseline"), arm("stamp")});
  ASSERT_EQ(schedule.size(), 2U);
  EXPECT_EQ(schedule[0].arm, "baseline");
  EXPECT_TRUE(schedule[0].is_verify && schedule[1].is_verify);
}

TEST(Plan, ThreeGroupsOfASlowPrefillFitAMinute) {
  // Passes of 1.7 and 0.65 s: fixed 2 x 0.5 + 2.35 s, four passes a round, verified once in three arms.
  const SessionPlan plan = plan_groups({3.35e9, 4 * 2.35e9, 3 * 2.35e9}, 48e9);
  EXPECT_EQ(plan.groups, 3);
  EXPECT_TRUE(plan.is_tight);
  EXPECT_TRUE(plan.fits);
  EXPECT_DOUBLE_EQ(plan.minimum_ns, 3 * (3.35e9 + 9.4e9) + 7.05e9);
}

TEST(Plan, IsLooseWhereThereIsTime) {
  const SessionPlan plan = plan_groups({1e9, 2e9, 1e9}, 60e9);
  EXPECT_FALSE(plan.is_tight);
  EXPECT_DOUBLE_EQ(plan.minimum_ns, 3 * (1e9 + 3e9 + 1e9));
}

TEST(Plan, SpendsSevenTenthsOfSpareTimeOnMoreGroups) {
  // A loose group takes 5 s: 0.7 * 45 / 5 = 6.3, 0.7 * 20 / 5 = 2.8, 0.7 * 600 / 5 = 84.
  EXPECT_EQ(plan_groups({1e9, 2e9, 1e9}, 45e9).groups, 6);
  EXPECT_EQ(plan_groups({1e9, 2e9, 1e9}, 20e9).groups, 3);
  EXPECT_EQ(plan_groups({1e9, 2e9, 1e9}, 600e9).groups, 8);
}

TEST(Plan, HasFewerGroupsRatherThanNoResult) {
  const SessionPlan two = plan_groups({10e9, 10e9, 0}, 45e9);
  EXPECT_FALSE(two.fits);
  EXPECT_EQ(two.groups, 2);
  EXPECT_EQ(plan_groups({10e9, 10e9, 0}, 5e9).groups, 1);
}

TEST(Replays, TheLargestSharesComeFirst) {
  const std::vector<ReplayCandidate> candidates{
      {0, "small", 0.04, 5}, {0, "dense", 0.7, 50}, {0, "attention", 0.2, 40}, {0, "lm_head", 0.06, 20}};
  // 100 in all: dense (50) and attention (40) fit, then lm_head (20) no longer does, the small rows (5) do.
  EXPECT_EQ(choose_replays(candidates, 1, 100), (std::vector<size_t>{0, 1, 2}));
}

TEST(Replays, WorkloadsShareTheTimeFairly) {
  const std::vector<ReplayCandidate> candidates{
      {0, "dense", 0.9, 80}, {1, "dense", 0.5, 30}, {1, "attention", 0.2, 20}};
  EXPECT_EQ(choose_replays(candidates, 2, 100), (std::vector<size_t>{1, 2}));
}

}  // namespace
}  // namespace opledger::session
