// Do the two clocks agree? Against planted sessions in which they do, and in which one of them lies.
#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

#include "synthetic_record.h"

namespace opledger::core {
namespace {

using testing::analysed;
using testing::check_named;
using testing::dense_replay;
using testing::PlantedReplay;
using testing::PlantedSession;
using testing::two_engines;

TEST(ReplayChecks, ClocksAgreeWhenTheIncrementIsTheCopyLessWhatItSavesItsOriginal) {
  PlantedSession session = two_engines();
  // c = 0.99 o, o' = 0.9 o, the neighbour gains 5 ms: increment 1188 - 120 + 5 = 1073 for o = 1200.
  PlantedReplay replay = dense_replay();
  replay.copy_ppm = 990000;
  replay.beside_ppm = 900000;
  replay.neighbour_ns = 5000000;
  session.replays = {replay};
  const WorkloadLedger ledger = analysed(session);
  const Row& dense = ledger.rows.at(0);
  ASSERT_TRUE(dense.replay_a && dense.replay_a->cost.ms);
  EXPECT_NEAR(*dense.replay_a->cost.ms, 1073.0, 1e-3);
  EXPECT_NEAR(*dense.replay_a->copy_ms, 1188.0, 1e-3);
  EXPECT_NEAR(*dense.replay_a->original_ms, 1080.0, 1e-3);
  EXPECT_EQ(dense.replay_a->copies, 1);
  const Check check = check_named(ledger, "clocks agree", "a", "dense_proj");
  EXPECT_EQ(check.status, CheckStatus::kHeld) << check.text;
  EXPECT_NEAR(*check.value, 0.0, 1e-3);
  EXPECT_NEAR(*check.limit, 60.0, 1e-3);
  ASSERT_FALSE(dense.notes.empty());
  EXPECT_NE(dense.notes.back().find("the row takes the stamps"), std::string::npos);
}

TEST(ReplayChecks, WhatStampingItselfCostsCancelsBetweenTheTwoStampedArms) {
  PlantedSession session = two_engines();
  session.a.stamped_extra_ns = 100000000;
  session.replays = {dense_replay()};
  const Check check = check_named(analysed(session), "clocks agree", "a", "dense_proj");
  EXPECT_EQ(check.status, CheckStatus::kHeld) << check.text;
  EXPECT_NEAR(*check.value, 0.0, 1e-3);
}

// Every pass as 16 steps; those of a's stamped replay are up to a fifth of a pass longer or shorter at
// random.
void tell_noisy_steps(Record& record, bool is_told) {
  constexpr int64_t kSteps = 16;
  std::mt19937 random(7);
  std::uniform_int_distribution<int64_t> noise_ns(-300'000'000, 300'000'000);
  for (Block& block : record.blocks) {
    const bool is_noisy = block.place.side == Side::kA && block.arm.rfind("stamped_replay", 0) == 0;
    const auto split = [](const std::vector<int64_t>& row) {
      std::vector<int64_t> part;
      for (const int64_t ns : row) part.push_back(ns / kSteps);
      return std::vector<std::vector<int64_t>>(kSteps, part);
    };
    for (Pass& pass : block.passes) {
      std::vector<int64_t> steps(kSteps, pass.graph_ns / kSteps);
      for (int64_t& step : steps) step += is_noisy ? noise_ns(random) / kSteps : 0;
      pass.graph_ns = std::accumulate(steps.begin(), steps.end(), int64_t{0});
      if (is_told) pass.step_graph_ns = steps;
    }
    if (!is_told) continue;
    for (auto* table : {&block.unit_ns, &block.copy_ns}) {
      if (!table->has_value()) continue;
      std::vector<std::vector<int64_t>> rows;
      for (const std::vector<int64_t>& row : **table)
        for (const std::vector<int64_t>& part : split(row)) rows.push_back(part);
      *table = rows;
    }
    for (auto* column : {&block.head_ns, &block.tail_ns}) {
      if (!column->has_value()) continue;
      std::vector<int64_t> rows;
      for (const int64_t ns : **column) rows.insert(rows.end(), kSteps, ns / kSteps);
      *column = rows;
    }
  }
}

TEST(ReplayChecks, ClocksAreComparedStepByStepWhereStepsAreTold) {
  PlantedSession session = two_engines();
  session.is_interleaved = true;
  session.rounds = 1;
  session.replays = {dense_replay()};
  for (const bool is_told : {false, true}) {
    Record record = session.record();
    tell_noisy_steps(record, is_told);
    const auto ledger = analyse_scoped(record, testing::planted_scoping(2), {});
    ASSERT_TRUE(ledger) << ledger.error().message;
    const Check check = check_named(ledger->workloads.at(0), "clocks agree", "a", "dense_proj");
    // Three turns alone tell 60 ms of 1364 apart no more.
    EXPECT_EQ(check.status, is_told ? CheckStatus::kHeld : CheckStatus::kFailed) << check.text;
  }
  session.replays[0].error_ns = -90000000;
  Record record = session.record();
  tell_noisy_steps(record, true);
  const auto ledger = analyse_scoped(record, testing::planted_scoping(2), {});
  ASSERT_TRUE(ledger) << ledger.error().message;
  const Check lie = check_named(ledger->workloads.at(0), "clocks agree", "a", "dense_proj");
  EXPECT_EQ(lie.status, CheckStatus::kFailed) << lie.text;
}

// Of dense_proj's 1200 ms only unit 0, 800 ms, was copied.
void expect_unit_0_alone_compared(const WorkloadLedger& ledger) {
  EXPECT_EQ(check_named(ledger, "clocks agree", "a", "dense_proj").status, CheckStatus::kHeld);
  EXPECT_NEAR(*ledger.rows.at(0).replay_a->copy_ms, 800.0, 1e-3);
  EXPECT_NEAR(*ledger.rows.at(0).replay_a->original_ms, 800.0, 1e-3);
}

TEST(ReplayChecks, OnlyTheUnitsThatWereCopiedAreCompared) {
  PlantedSession session = two_engines();
  session.replays = {dense_replay()};
  session.replays[0].refused = {2};
  const WorkloadLedger ledger = analysed(session);
  expect_unit_0_alone_compared(ledger);
  EXPECT_NE(ledger.rows.at(0).notes.at(0).find("1 units could not be replayed"), std::string::npos);
}

TEST(ReplayChecks, AReplayThatLostUnitsIsJudgedAsItWasTimed) {
  PlantedSession session = two_engines();
  session.replays = {dense_replay()};
  session.replays[0].excluded = {2};
  const WorkloadLedger ledger = analysed(session);
  expect_unit_0_alone_compared(ledger);
  // With that unit it changed the state; what was timed afterwards did not.
  EXPECT_EQ(check_named(ledger, "identical", "a").status, CheckStatus::kHeld);
  session.bad_state_arm = "replay:dense_proj:sibling:1";
  EXPECT_EQ(check_named(analysed(session), "identical", "a").status, CheckStatus::kFailed);
}

TEST(ReplayChecks, OfSeveralCopiesTheIncrementIsComparedAndOfOneTheOriginal) {
  PlantedSession session = two_engines();
  // Of four copies of attention the later ones are warm: 90 ms each on average, where the original takes 150.
  PlantedReplay many{"attention", {1}, "sibling", 4, 600000};
  PlantedReplay one{"attention", {1}};
  one.is_plain = false;
  session.replays = {many, one};
  const WorkloadLedger ledger = analysed(session);
  const Check check = check_named(ledger, "clocks agree", "a", "attention");
  EXPECT_EQ(check.status, CheckStatus::kHeld) << check.text;
  const auto row = std::find_if(ledger.rows.begin(), ledger.rows.end(),
                                [](const Row& candidate) { return candidate.scope == "attention"; });
  ASSERT_TRUE(row != ledger.rows.end() && row->replay_a && row->replay_a->cost.ms);
  EXPECT_EQ(row->replay_a->copies, 4);
  EXPECT_NEAR(*row->replay_a->cost.ms, 90.0, 1e-3);
  session.replays[1].copy_ppm = 800000;
  EXPECT_EQ(check_named(analysed(session), "clocks agree", "a", "attention").status, CheckStatus::kFailed);
  session.replays = {many, one};
  session.replays[0].error_ns = 4 * 10000000;  // 10 ms a copy; allowed are 7.5
  EXPECT_EQ(check_named(analysed(session), "clocks agree", "a", "attention").status, CheckStatus::kFailed);
}

TEST(ReplayChecks, ADifferenceThatIsNotResolvedIsNotExplainedByABracket) {
  PlantedSession session = two_engines();
  PlantedReplay near = dense_replay();
  near.copy_ppm = 950000;
  PlantedReplay far = dense_replay();
  far.weights = "shadow";
  far.copy_ppm = 1100000;
  session.replays = {near, far};
  session.a.moved_ns = 100000000;  // o is 1200 and 1100 ms in turns, so c - o reaches across the limit of 60
  const Check check = check_named(analysed(session), "clocks agree", "a", "dense_proj");
  EXPECT_EQ(check.status, CheckStatus::kFailed) << check.text;
  EXPECT_NE(check.text.find("c - o"), std::string::npos);
  EXPECT_NE(check.text.find("unresolved"), std::string::npos) << check.text;
}

TEST(ReplayChecks, TimeBookedOnAnotherLargeRowIsFoundByItsCopies) {
  PlantedSession session = two_engines();
  session.replays = {dense_replay(), {"attention", {1}}};
  session.a.moved_ns = 300000000;  // of dense's 800 ms, in half of the stamped passes
  const WorkloadLedger ledger = analysed(session);
  EXPECT_EQ(check_named(ledger, "closes", "a").status, CheckStatus::kHeld);
  EXPECT_EQ(check_named(ledger, "clocks agree", "a", "dense_proj").status, CheckStatus::kFailed);
  EXPECT_EQ(check_named(ledger, "clocks agree", "a", "attention").status, CheckStatus::kFailed);
}

TEST(ReplayChecks, ARowBelowZeroIsNegative) {
  PlantedSession session = two_engines();
  session.a.price_error_ns = 30000000;  // norm costs 10 ms: it is left with -20
  const WorkloadLedger ledger = analysed(session);
  const Check check = check_named(ledger, "no negative", "a");
  EXPECT_EQ(check.status, CheckStatus::kFailed);
  EXPECT_NE(check.text.find("norm"), std::string::npos) << check.text;
  for (const Row& row : ledger.rows) EXPECT_TRUE(row.scope != "norm" || !row.is_real);
}

TEST(ReplayChecks, ClocksDisagreeWhenTheIncrementLies) {
  PlantedSession session = two_engines();
  PlantedReplay replay = dense_replay();
  replay.error_ns = -90000000;
  session.replays = {replay};
  const Check check = check_named(analysed(session), "clocks agree", "a", "dense_proj");
  EXPECT_EQ(check.status, CheckStatus::kFailed);
  EXPECT_NEAR(*check.value, 90.0, 1e-3);
  EXPECT_NE(check.text.find("allowed 60"), std::string::npos) << check.text;
}

TEST(ReplayChecks, CopiesThatDoNothingDisagree) {
  PlantedSession session = two_engines();
  PlantedReplay replay = dense_replay();
  replay.copy_ppm = 0;
  session.replays = {replay, {"norm", {3}, "sibling", 16, 0}};
  const WorkloadLedger ledger = analysed(session);
  for (const char* row : {"dense_proj", "norm"}) {
    const Check check = check_named(ledger, "clocks agree", "a", row);
    EXPECT_EQ(check.status, CheckStatus::kFailed) << row;
    EXPECT_TRUE(check.is_shown) << row;
  }
}

TEST(ReplayChecks, ACopyUnlikeItsOriginalNeedsABracket) {
  PlantedSession session = two_engines();
  PlantedReplay near = dense_replay();
  near.copy_ppm = 880000;
  session.replays = {near};
  EXPECT_EQ(check_named(analysed(session), "clocks agree", "a", "dense_proj").status, CheckStatus::kFailed);
  PlantedReplay far = dense_replay();
  far.weights = "shadow";
  far.copy_ppm = 1100000;
  session.replays = {near, far};
  EXPECT_EQ(check_named(analysed(session), "clocks agree", "a", "dense_proj").status, CheckStatus::kHeld);
  far.copy_ppm = 900000;
  session.replays = {near, far};
  EXPECT_EQ(check_named(analysed(session), "clocks agree", "a", "dense_proj").status, CheckStatus::kFailed);
}

TEST(ReplayChecks, AWarmReplayIsKnownFromItsBytes) {
  PlantedSession session = two_engines();
  PlantedReplay replay = dense_replay();
  replay.copy_ppm = 700000;
  replay.reuse_distance_bytes = 10000000;  // the knee is 40 MB, the weights 80 MB
  session.replays = {replay};
  const WorkloadLedger ledger = analysed(session);
  EXPECT_EQ(check_named(ledger, "clocks agree", "a", "dense_proj").status, CheckStatus::kHeld);
  EXPECT_NE(ledger.rows.at(0).notes.at(0).find("warm"), std::string::npos);
}

TEST(ReplayChecks, RowsNotReplayedSaySoAndAreNeverHeld) {
  PlantedSession session = two_engines();
  session.replays = {dense_replay()};
  const WorkloadLedger ledger = analysed(session);
  EXPECT_EQ(check_named(ledger, "clocks agree", "b", "attention").status, CheckStatus::kNotRun);
  Ledger whole;
  whole.workloads = {ledger};
  EXPECT_FALSE(whole.every_check_held());
}

TEST(ReplayChecks, SmallRowsShareAStampedReplayAndAreJudgedByTheirOwnCopies) {
  PlantedSession session = two_engines();
  PlantedReplay small{kSmallRows, {1, 3}};  // attention and norm: 150 and 10 ms of 1364
  small.is_plain = false;
  session.replays = {dense_replay(), small};
  const WorkloadLedger honest = analysed(session);
  EXPECT_EQ(check_named(honest, "clocks agree", "a", "norm").status, CheckStatus::kHeld);
  EXPECT_EQ(check_named(honest, "clocks agree", "a", "dense_proj").status, CheckStatus::kHeld);
  // A large row is not settled by copies alone.
  EXPECT_EQ(check_named(honest, "clocks agree", "a", "attention").status, CheckStatus::kFailed);
  const auto norm = std::find_if(honest.rows.begin(), honest.rows.end(),
                                 [](const Row& row) { return row.scope == "norm"; });
  ASSERT_TRUE(norm != honest.rows.end() && norm->replay_a);
  EXPECT_NEAR(*norm->replay_a->copy_ms, 10.0, 1e-3);
  EXPECT_NEAR(*norm->replay_a->original_ms, 10.0, 1e-3);
  EXPECT_FALSE(norm->replay_a->cost.ms);
  session.replays[1].copy_ppm = 0;  // 10 ms short where 0.5% of the pass, 6.8 ms, is allowed
  EXPECT_EQ(check_named(analysed(session), "clocks agree", "a", "norm").status, CheckStatus::kFailed);
}

TEST(ReplayChecks, TwoRoundsOfOneGroupResolveNothing) {
  PlantedSession session = two_engines();
  session.replays = {dense_replay()};
  session.groups = 1;
  const Check check = check_named(analysed(session), "clocks agree", "a", "dense_proj");
  EXPECT_EQ(check.status, CheckStatus::kFailed);
  EXPECT_FALSE(check.is_shown);
  EXPECT_NE(check.text.find("unresolved"), std::string::npos);
}

TEST(ReplayChecks, LinearNeedsOneTwoAndFourCopies) {
  PlantedSession session = two_engines();
  for (const int copies : {1, 2, 4}) {
    PlantedReplay replay = dense_replay();
    replay.copies = copies;
    session.replays.push_back(replay);
  }
  EXPECT_EQ(check_named(analysed(session), "linear", "a").status, CheckStatus::kHeld);
  // Every pass with copies costs 50 ms more, however many: the constant is 50 of 1364 ms.
  for (PlantedReplay& replay : session.replays) replay.error_ns = 50000000;
  const Check check = check_named(analysed(session), "linear", "a");
  EXPECT_EQ(check.status, CheckStatus::kFailed);
  EXPECT_NEAR(*check.value, 50.0 / 1364.0, 1e-3);
}

TEST(ReplayChecks, AReplayThatMakesThePassFasterIsNegative) {
  PlantedSession session = two_engines();
  PlantedReplay replay{"norm", {3}};
  replay.error_ns = -40000000;
  session.replays = {replay};
  const Check check = check_named(analysed(session), "no negative", "a");
  EXPECT_EQ(check.status, CheckStatus::kFailed);
  EXPECT_NE(check.text.find("norm"), std::string::npos);
}

}  // namespace
}  // namespace opledger::core
