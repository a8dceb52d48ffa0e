// Rounds and plans with costs in round figures; every expectation is worked out by hand in the test.
#include "session/schedule.h"

#include <algorithm>
#include <array>
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

ArmPlan replay(const std::string& scope, const std::string& kind, double cost_ratio) {
  ArmPlan plan = arm(kind, cost_ratio);
  plan.id = kind + ":" + scope;
  plan.scope = scope;
  plan.copies = 1;
  return plan;
}

const std::vector<ArmPlan> kArms{arm("baseline"),
                                 arm("price"),
                                 arm("stamp"),
                                 arm("empty"),
                                 replay("dense", "replay", 1.5),
                                 replay("dense", "stamped_replay", 1.5),
                                 replay("norm", "stamped_replay", 1.25)};

RoundOptions dear() {
  RoundOptions options;
  options.pass_ns = 2e9;
  return options;
}

/// The arms of each turn, in alphabetical order.
std::multiset<std::multiset<std::string>> turns_of(const std::vector<Stint>& round) {
  std::multiset<std::multiset<std::string>> turns;
  for (const Stint& stint : round) {
    for (const ScheduleEntry& entry : stint) turns.insert({entry.arms.begin(), entry.arms.end()});
  }
  return turns;
}

TEST(Round, ATurnHoldsTheArmsOfOneScopeWithABaselineAndAStamp) {
  Random random(5);
  EXPECT_EQ(turns_of(round_of(kArms, RoundOptions{}, random)),
            (std::multiset<std::multiset<std::string>>{
                {"baseline", "stamp", "replay:dense", "stamped_replay:dense"},
                {"baseline", "stamp", "stamped_replay:norm"}}));
}

TEST(Round, TheFirstOfAGroupHasATurnForPriceAndEmptyNodes) {
  RoundOptions options;
  options.with_price = options.with_empty = true;
  Random random(5);
  const auto turns = turns_of(round_of(kArms, options, random));
  EXPECT_EQ(turns.size(), 3U);
  EXPECT_EQ(turns.count({"baseline", "price", "stamp", "empty"}), 1U);
}

TEST(Round, WithoutReplaysItIsOneTurn) {
  Random random(5);
  EXPECT_EQ(turns_of(round_of({arm("baseline"), arm("stamp")}, RoundOptions{}, random)),
            (std::multiset<std::multiset<std::string>>{{"baseline", "stamp"}}));
  EXPECT_EQ(turns_of(round_of({arm("baseline")}, RoundOptions{}, random)),
            (std::multiset<std::multiset<std::string>>{{"baseline"}}));
}

TEST(Round, ATightOneIsOneTurnOfOnePass) {
  RoundOptions options;
  options.is_tight = options.with_price = true;
  options.steps = 16;
  options.pass_ns = 1e9;
  Random random(5);
  const std::vector<Stint> round = round_of(kArms, options, random);
  ASSERT_EQ(round.size(), 1U);
  ASSERT_EQ(round[0].size(), 1U);
  EXPECT_EQ(round[0][0].arms.size(), 6U);
  EXPECT_EQ(round[0][0].passes, 1);
}

TEST(Round, ATurnLastsAboutASecond) {
  const auto passes_of = [](double pass_ns) {
    RoundOptions options;
    options.pass_ns = pass_ns;
    options.steps = 2;
    Random random(1);
    // baseline, stamp, replay (1.5): 3.5 passes in turn
    const auto round =
        round_of({arm("baseline"), arm("stamp"), replay("dense", "replay", 1.5)}, options, random);
    return round.at(0).at(0).passes;
  };
  EXPECT_EQ(passes_of(400e6), 1);
  EXPECT_EQ(passes_of(100e6), 3);
  EXPECT_EQ(passes_of(1e6), 8);
}

ScheduleEntry turn_of(double pass_ns, int steps) {
  RoundOptions options;
  options.pass_ns = pass_ns;
  options.steps = steps;
  Random random(1);
  return round_of({arm("baseline"), arm("stamp")}, options, random).at(0).at(0);
}

TEST(Round, ATurnHasNoMorePassesThanMakeSixteenSteps) {
  EXPECT_EQ(turn_of(100e6, 16).passes, 1);
  EXPECT_EQ(turn_of(100e6, 6).passes, 3);
  EXPECT_EQ(turn_of(300e6, 6).passes, 2);  // a second
}

TEST(Round, ATurnBeginsWithSomeFifteenMillisecondsForNothing) {
  EXPECT_EQ(turn_of(160e6, 16).warm_up_steps, 2);
  EXPECT_EQ(turn_of(90e6, 1).warm_up_steps, 1);
  EXPECT_EQ(turn_of(1e6, 4).warm_up_steps, 8);
}

TEST(Round, StepsOfMoreThanATenthOfASecondNeedNoWarmUp) {
  EXPECT_EQ(turn_of(110e6, 1).warm_up_steps, 0);
  EXPECT_EQ(turn_of(2e9, 1).warm_up_steps, 0);
  EXPECT_EQ(turn_of(2e9, 16).warm_up_steps, 0);  // 125 ms
}

TEST(Round, ThePriceIsToldByThreeStepsUnlessTheyAreLong) {
  RoundOptions options;
  options.with_price = true;
  const auto passes_of = [&](double pass_ns, int steps) {
    options.pass_ns = pass_ns;
    options.steps = steps;
    Random random(1);
    return round_of({arm("baseline"), arm("price", 12), arm("stamp")}, options, random).at(0).at(0).passes;
  };
  EXPECT_EQ(passes_of(90e6, 1), 3);  // a second holds one pass of 14
  EXPECT_EQ(passes_of(90e6, 2), 2);
  EXPECT_EQ(passes_of(2e9, 1), 1);
}

TEST(Round, ArmsOfLongPassesHaveTheSameTurns) {
  Random random(5);
  const std::vector<Stint> round = round_of(kArms, dear(), random);
  EXPECT_EQ(turns_of(round), (std::multiset<std::multiset<std::string>>{
                                 {"baseline", "stamp", "replay:dense", "stamped_replay:dense"},
                                 {"baseline", "stamp", "stamped_replay:norm"}}));
  for (const Stint& stint : round) EXPECT_EQ(stint.at(0).passes, 1);
}

TEST(Round, LeavesPriceAndEmptyToTheFirstOfAGroup) {
  for (const RoundOptions& options : {RoundOptions{}, dear()}) {
    Random random(1);
    for (const auto& turn : turns_of(round_of(kArms, options, random)))
      EXPECT_EQ(turn.count("price") + turn.count("empty"), 0U);
  }
}

TEST(Round, OrderIsRandom) {
  std::set<std::string> first_of_turn;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    first_of_turn.insert(round_of(kArms, RoundOptions{}, random)[0][0].arms[0]);
  }
  EXPECT_EQ(first_of_turn, (std::set<std::string>{"baseline", "stamp", "replay:dense", "stamped_replay:dense",
                                                  "stamped_replay:norm"}));
}

const std::array<double, 2> kStepNs{12e6, 20e6};

TEST(JointRound, TurnsOfOneRowGoTogetherWithTheSamePassesAndBursts) {
  ScheduleEntry dense{{"baseline", "replay:dense"}, 2};
  ScheduleEntry norm{{"baseline", "replay:norm"}, 5};
  dense.scope = "dense";
  norm.scope = "norm";
  dense.cost_ratio = 2.5;
  norm.cost_ratio = 1.5;
  ScheduleEntry other_dense = dense;
  other_dense.passes = 3;
  const auto joint = joint_round({{{{dense}, {norm}}, {{norm}, {other_dense}}}}, kStepNs);
  ASSERT_EQ(joint.size(), 2U);
  for (const JointStint& both : joint) {
    EXPECT_TRUE(both.is_shared);
    const ScheduleEntry& a = both.of_side[0].at(0);
    const ScheduleEntry& b = both.of_side[1].at(0);
    EXPECT_EQ(a.scope, b.scope);
    EXPECT_EQ(a.passes, b.passes);
    EXPECT_EQ(a.burst_steps, b.burst_steps);
  }
  EXPECT_EQ(joint[0].of_side[0][0].passes, 2);
  // 100 ms over 2.5 * 20 ms, and over 1.5 * 20 ms rounded up
  EXPECT_EQ(joint[0].of_side[0][0].burst_steps, 2);
  EXPECT_EQ(joint[1].of_side[0][0].burst_steps, 4);
}

TEST(JointRound, ARowOfOneSideIsMeasuredAloneWithoutBursts) {
  ScheduleEntry dense{{"baseline", "replay:dense"}, 2};
  dense.scope = "dense";
  dense.cost_ratio = 2.5;
  ScheduleEntry norm = dense;
  norm.scope = "norm";
  const auto joint = joint_round({{{{dense}}, {{norm}}}}, kStepNs);
  ASSERT_EQ(joint.size(), 2U);
  for (const JointStint& both : joint) EXPECT_FALSE(both.is_shared);
  EXPECT_TRUE(joint[0].of_side[1].empty());
  EXPECT_TRUE(joint[1].of_side[0].empty());
  EXPECT_EQ(joint[0].of_side[0][0].burst_steps, 0);
  EXPECT_EQ(joint[1].of_side[1][0].burst_steps, 0);
}

TEST(JointRound, AnEngineHoldsBetweenBurstsButNotAtTheEnd) {
  ScheduleEntry entry{{"baseline"}, 3, false, 0, 4};
  EXPECT_EQ(expected_holds({entry}, 16), 11U);  // 48 steps: after 4, 8, ... 44
  entry.burst_steps = 5;
  EXPECT_EQ(expected_holds({entry}, 16), 9U);  // after 5, 10, ... 45
  EXPECT_EQ(expected_holds({entry, entry}, 1), 0U);
  entry.is_verify = true;
  EXPECT_EQ(expected_holds({entry}, 16), 0U);
}

TEST(Round, CostCountsEveryPass) {
  RoundOptions options;
  options.pass_ns = 4e8;
  options.steps = 4;
  // 1 + 1 + 1.5 + 1.5 and 1 + 1 + 1.25, each once: they last a second and more
  EXPECT_DOUBLE_EQ(round_cost_ns(kArms, options), (5 + 3.25) * 4e8);
  options.is_tight = true;
  // one turn: 1 + 1 + 1.5 + 1.5 + 1.25
  EXPECT_DOUBLE_EQ(round_cost_ns(kArms, options), 6.25 * 4e8);
}

TEST(Schedule, OwesABlockForEveryArmOfEveryTurn) {
  const std::vector<ScheduleEntry> schedule{{{"baseline", "stamp"}, 3, false}, {{"stamp"}, 1, true}};
  const std::vector<ExpectedBlock> blocks = expected_blocks(schedule);
  ASSERT_EQ(blocks.size(), 3U);
  EXPECT_EQ(blocks[1].arm, "stamp");
  EXPECT_EQ(blocks[1].passes, 3);
  EXPECT_EQ(blocks[1].entry, 0U);
  EXPECT_TRUE(blocks[2].is_verify);
  EXPECT_EQ(blocks[2].entry, 1U);
}

TEST(Verify, StartsFromTheBaseline) {
  const std::vector<ScheduleEntry> schedule = verify_of({arm("stamp"), arm("baseline")});
  ASSERT_EQ(schedule.size(), 1U);
  EXPECT_EQ(schedule[0].arms, (std::vector<std::string>{"baseline", "stamp"}));
  EXPECT_TRUE(schedule[0].is_verify);
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
  EXPECT_DOUBLE_EQ(plan.minimum_ns, 3 * (1e9 + 3e9) + 1e9);
}

TEST(Plan, SpendsThreeTenthsOfSpareTimeOnMoreGroups) {
  // A loose group takes 4.33 s: 0.3 * 80 / 4.33 = 5.5, 0.3 * 20 / 4.33 = 1.4, 0.3 * 600 / 4.33 = 42.
  EXPECT_EQ(plan_groups({1e9, 2e9, 1e9}, 80e9).groups, 5);
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
