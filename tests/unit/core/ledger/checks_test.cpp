// Each check against a planted session in which it must hold, and one in which it must not.
#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

#include "synthetic_record.h"

namespace opledger::core {
namespace {

using testing::analysed;
using testing::PlantedReplay;
using testing::PlantedSession;
using testing::two_engines;

// The first check of that name and engine whose text begins with `start`.
Check check_named(const WorkloadLedger& ledger, const std::string& name, const std::string& engine,
                  const std::string& start = "") {
  for (const Check& check : ledger.checks) {
    if (check.name == name && check.engine == engine && check.text.compare(0, start.size(), start) == 0)
      return check;
  }
  ADD_FAILURE() << "no check " << name << " of " << engine << " " << start;
  return {};
}

// The planted session's ledger after `part` became `instead` in its record, at every place.
WorkloadLedger altered(const std::string& part, const std::string& instead) {
  std::string text = two_engines().text();
  size_t places = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + instead.size())) {
    text.replace(at, part.size(), instead);
    ++places;
  }
  EXPECT_GT(places, 0U) << part;
  const auto record = parse_record(text, "altered.json");
  EXPECT_TRUE(record) << (record ? "" : record.error().message);
  if (!record) return {};
  const auto ledger = analyse_scoped(*record, testing::planted_scoping(2), {});
  EXPECT_TRUE(ledger);
  return ledger ? ledger->workloads.at(0) : WorkloadLedger{};
}

PlantedReplay dense_replay() {
  return {"dense_proj", {0, 2}};
}

TEST(Checks, AllHoldInAnHonestSessionExceptThoseThatCannotRun) {
  PlantedSession session = two_engines();
  session.replays = {dense_replay(), {"attention", {1}}, {"norm", {3}}};
  for (const Check& check : analysed(session).checks) {
    const bool cannot_run = check.name == "complete" || check.name == "linear" || check.name == "same work" ||
                            check.name == "busy";
    EXPECT_EQ(check.status, cannot_run ? CheckStatus::kNotRun : CheckStatus::kHeld)
        << check.name << ": " << check.text;
    EXPECT_FALSE(check.text.empty());
  }
}

TEST(Checks, ClosesIsTheSumOfTheStampsOverTheBaseline) {
  const WorkloadLedger ledger = analysed(two_engines());
  // (1364 - 4) / 1364 by hand: what lies in no unit is missing.
  EXPECT_NEAR(*check_named(ledger, "closes", "a").value, 0.9970674486803519, 1e-9);
  PlantedSession open = two_engines();
  open.a.rest_ns = 60000000;
  EXPECT_EQ(check_named(analysed(open), "closes", "a").status, CheckStatus::kFailed);
  EXPECT_EQ(check_named(analysed(open), "closes", "b").status, CheckStatus::kHeld);
}

TEST(Checks, ClosesDidNotRunWithoutThreeLaunchGroups) {
  PlantedSession session = two_engines();
  session.groups = 2;
  EXPECT_EQ(check_named(analysed(session), "closes", "a").status, CheckStatus::kNotRun);
}

TEST(Checks, ADoubledPriceOpensTheClosure) {
  PlantedSession session = two_engines();
  session.b.price_ns = 2000000;
  session.b.price_error_ns = 2000000;
  // (328 - 8) / 329: four intervals, 2 ms too much off each.
  const Check check = check_named(analysed(session), "closes", "b");
  EXPECT_NEAR(*check.value, (328.0 - 8.0) / 329.0, 1e-3);
  EXPECT_EQ(check.status, CheckStatus::kFailed);
}

TEST(Checks, StampedPassesMustAddUpToTheNanosecond) {
  std::string text = two_engines().text();
  const size_t stamp = text.find("\"arm\":\"stamp\"");
  const size_t head = text.find("\"head_ns\":[", stamp) + 11;
  text.insert(head, "1");
  const auto record = parse_record(text, "sum.json");
  ASSERT_TRUE(record) << record.error().message;
  const auto ledger = analyse_scoped(*record, testing::planted_scoping(2), {});
  ASSERT_TRUE(ledger);
  const Check check = check_named(ledger->workloads.at(0), "closes", "a");
  EXPECT_EQ(check.status, CheckStatus::kFailed);
  EXPECT_NE(check.text.find("in 1 of"), std::string::npos) << check.text;
}

TEST(Checks, IdenticalFailsOnADigestAStateOrUnverifiedArms) {
  PlantedSession session = two_engines();
  EXPECT_EQ(check_named(analysed(session), "identical", "a").status, CheckStatus::kHeld);
  session.bad_digest_arm = "stamp";
  const Check digest = check_named(analysed(session), "identical", "a");
  EXPECT_EQ(digest.status, CheckStatus::kFailed);
  EXPECT_NE(digest.text.find("other logits than the baseline in stamp"), std::string::npos) << digest.text;
  session.bad_digest_arm.clear();
  session.bad_state_arm = "empty";
  const Check state = check_named(analysed(session), "identical", "a");
  EXPECT_EQ(state.status, CheckStatus::kFailed);
  EXPECT_NE(state.text.find("other KV or state bytes than the baseline in empty"), std::string::npos)
      << state.text;
  EXPECT_EQ(check_named(analysed(session), "identical", "b").status, CheckStatus::kHeld);
  session.bad_state_arm.clear();
  session.has_verify = false;
  EXPECT_EQ(check_named(analysed(session), "identical", "a").status, CheckStatus::kNotRun);
}

TEST(Checks, IdenticalDidNotRunWhereNobodyLookedAtTheLogits) {
  const Check check = check_named(altered("\"logits\":\"ok\"", "\"logits\":null"), "identical", "a");
  EXPECT_EQ(check.status, CheckStatus::kNotRun);
  EXPECT_NE(check.text.find("not looked at"), std::string::npos) << check.text;
}

TEST(Checks, AnEmptyDigestEqualsNothing) {
  const WorkloadLedger ledger = altered("\"digests\":[[\"aaaa\"]]", "\"digests\":[[]]");
  EXPECT_EQ(check_named(ledger, "identical", "a").status, CheckStatus::kNotRun);
  EXPECT_EQ(check_named(ledger, "deterministic", "a").status, CheckStatus::kNotRun);
}

TEST(Checks, IdenticalFailsWhereACopyCouldJoinItsOriginal) {
  const Check check = check_named(altered("\"shared_inputs\":null", "\"shared_inputs\":7"), "identical", "a");
  EXPECT_EQ(check.status, CheckStatus::kFailed);
  EXPECT_NE(check.text.find("copies could join"), std::string::npos) << check.text;
}

TEST(Checks, AStampedPassWithoutItsHeadDoesNotAddUp) {
  const Check check = check_named(altered("\"head_ns\":[", "\"other\":["), "closes", "a");
  EXPECT_EQ(check.status, CheckStatus::kFailed);
  EXPECT_NE(check.text.find("lack one of the three"), std::string::npos) << check.text;
}

TEST(Checks, APlantedFaultIsSaidThoughBothEnginesHaveIt) {
  PlantedSession session = two_engines();
  session.environment = {{"GGML_SWITCH", "1"}, {"OPLEDGER_GGML_FAULT", "idle_copies"}};
  const std::vector<std::string> caveats = analysed(session).not_solid;
  ASSERT_FALSE(caveats.empty());
  EXPECT_NE(caveats.front().find("OPLEDGER_GGML_FAULT=idle_copies"), std::string::npos) << caveats.front();
}

TEST(Checks, ClocksAgreeWhenTheIncrementIsTheCopyLessWhatItSavesItsOriginal) {
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

TEST(Checks, WhatStampingItselfCostsCancelsBetweenTheTwoStampedArms) {
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

TEST(Checks, ClocksAreComparedStepByStepWhereStepsAreTold) {
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

TEST(Checks, SlowDriftIsNoDisagreementButIsNotQuiet) {
  PlantedSession session = two_engines();
  session.a.drift_ppm = 40000;  // 4% from the first round to the second
  session.replays = {dense_replay()};
  const WorkloadLedger ledger = analysed(session);
  EXPECT_EQ(check_named(ledger, "clocks agree", "a", "dense_proj").status, CheckStatus::kHeld);
  // By hand, group 1: 1.04 / 1; the others 1.045 / 1.005 and 1.035 / 0.995; the median of the three.
  const Check check = check_named(ledger, "quiet", "a", "last baselines");
  EXPECT_EQ(check.status, CheckStatus::kFailed);
  EXPECT_NEAR(*check.value, 0.04, 1e-6);
  // Opposite drifts of two groups do not cancel.
  session.a.drift_ppm = -40000;
  EXPECT_NEAR(*check_named(analysed(session), "quiet", "a", "last baselines").value, 0.04, 1e-6);
}

TEST(Checks, IdenticalFailsOnOtherLogitsInAVerification) {
  Record record = two_engines().record();
  for (Block& block : record.blocks) {
    if (block.is_verify && block.arm == "stamp" && block.place.side == Side::kA) block.digests = {{"ffff"}};
  }
  const auto ledger = analyse_scoped(record, testing::planted_scoping(2), {});
  ASSERT_TRUE(ledger) << ledger.error().message;
  const Check check = check_named(ledger->workloads.at(0), "identical", "a");
  EXPECT_EQ(check.status, CheckStatus::kFailed);
  EXPECT_NE(check.text.find("other logits than the baseline in stamp"), std::string::npos) << check.text;
  EXPECT_EQ(check_named(ledger->workloads.at(0), "identical", "b").status, CheckStatus::kHeld);
  // An engine that digests no state is compared all the same.
  for (Block& block : record.blocks) block.state_digest.reset();
  const auto stateless = analyse_scoped(record, testing::planted_scoping(2), {});
  ASSERT_TRUE(stateless) << stateless.error().message;
  const Check other = check_named(stateless->workloads.at(0), "identical", "a");
  EXPECT_NE(other.text.find("other logits than the baseline in stamp"), std::string::npos) << other.text;
}

// Of dense_proj's 1200 ms only unit 0, 800 ms, was copied.
void expect_unit_0_alone_compared(const WorkloadLedger& ledger) {
  EXPECT_EQ(check_named(ledger, "clocks agree", "a", "dense_proj").status, CheckStatus::kHeld);
  EXPECT_NEAR(*ledger.rows.at(0).replay_a->copy_ms, 800.0, 1e-3);
  EXPECT_NEAR(*ledger.rows.at(0).replay_a->original_ms, 800.0, 1e-3);
}

TEST(Checks, OnlyTheUnitsThatWereCopiedAreCompared) {
  PlantedSession session = two_engines();
  session.replays = {dense_replay()};
  session.replays[0].refused = {2};
  const WorkloadLedger ledger = analysed(session);
  expect_unit_0_alone_compared(ledger);
  EXPECT_NE(ledger.rows.at(0).notes.at(0).find("1 units could not be replayed"), std::string::npos);
}

TEST(Checks, AReplayThatLostUnitsIsJudgedAsItWasTimed) {
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

TEST(Checks, OfSeveralCopiesTheIncrementIsComparedAndOfOneTheOriginal) {
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

TEST(Checks, ADifferenceThatIsNotResolvedIsNotExplainedByABracket) {
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

TEST(Checks, TimeBookedOnAnotherLargeRowIsFoundByItsCopies) {
  PlantedSession session = two_engines();
  session.replays = {dense_replay(), {"attention", {1}}};
  session.a.moved_ns = 300000000;  // of dense's 800 ms, in half of the stamped passes
  const WorkloadLedger ledger = analysed(session);
  EXPECT_EQ(check_named(ledger, "closes", "a").status, CheckStatus::kHeld);
  EXPECT_EQ(check_named(ledger, "clocks agree", "a", "dense_proj").status, CheckStatus::kFailed);
  EXPECT_EQ(check_named(ledger, "clocks agree", "a", "attention").status, CheckStatus::kFailed);
}

TEST(Checks, ARowBelowZeroIsNegative) {
  PlantedSession session = two_engines();
  session.a.price_error_ns = 30000000;  // norm costs 10 ms: it is left with -20
  const WorkloadLedger ledger = analysed(session);
  const Check check = check_named(ledger, "no negative", "a");
  EXPECT_EQ(check.status, CheckStatus::kFailed);
  EXPECT_NE(check.text.find("norm"), std::string::npos) << check.text;
  for (const Row& row : ledger.rows) EXPECT_TRUE(row.scope != "norm" || !row.is_real);
}

TEST(Checks, ClocksDisagreeWhenTheIncrementLies) {
  PlantedSession session = two_engines();
  PlantedReplay replay = dense_replay();
  replay.error_ns = -90000000;
  session.replays = {replay};
  const Check check = check_named(analysed(session), "clocks agree", "a", "dense_proj");
  EXPECT_EQ(check.status, CheckStatus::kFailed);
  EXPECT_NEAR(*check.value, 90.0, 1e-3);
  EXPECT_NE(check.text.find("allowed 60"), std::string::npos) << check.text;
}

TEST(Checks, CopiesThatDoNothingDisagree) {
  PlantedSession session = two_engines();
  PlantedReplay replay = dense_replay();
  replay.copy_ppm = 0;
  session.replays = {replay, {"norm", {3}, "sibling", 16, 0}};
  const WorkloadLedger ledger = analysed(session);
  EXPECT_EQ(check_named(ledger, "clocks agree", "a", "dense_proj").status, CheckStatus::kFailed);
  EXPECT_EQ(check_named(ledger, "clocks agree", "a", "norm").status, CheckStatus::kFailed);
}

TEST(Checks, ACopyUnlikeItsOriginalNeedsABracket) {
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

TEST(Checks, AWarmReplayIsKnownFromItsBytes) {
  PlantedSession session = two_engines();
  PlantedReplay replay = dense_replay();
  replay.copy_ppm = 700000;
  replay.reuse_distance_bytes = 10000000;  // the knee is 40 MB, the weights 80 MB
  session.replays = {replay};
  const WorkloadLedger ledger = analysed(session);
  EXPECT_EQ(check_named(ledger, "clocks agree", "a", "dense_proj").status, CheckStatus::kHeld);
  EXPECT_NE(ledger.rows.at(0).notes.at(0).find("warm"), std::string::npos);
}

TEST(Checks, RowsNotReplayedSaySoAndAreNeverHeld) {
  PlantedSession session = two_engines();
  session.replays = {dense_replay()};
  const WorkloadLedger ledger = analysed(session);
  EXPECT_EQ(check_named(ledger, "clocks agree", "b", "attention").status, CheckStatus::kNotRun);
  Ledger whole;
  whole.workloads = {ledger};
  EXPECT_FALSE(whole.every_check_held());
}

TEST(Checks, SmallRowsShareAStampedReplayAndAreJudgedByTheirOwnCopies) {
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

TEST(Checks, TwoRoundsOfOneGroupResolveNothing) {
  PlantedSession session = two_engines();
  session.replays = {dense_replay()};
  session.groups = 1;
  const Check check = check_named(analysed(session), "clocks agree", "a", "dense_proj");
  EXPECT_EQ(check.status, CheckStatus::kFailed);
  EXPECT_NE(check.text.find("unresolved"), std::string::npos);
}

TEST(Checks, LinearNeedsOneTwoAndFourCopies) {
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

TEST(Checks, AReplayThatMakesThePassFasterIsNegative) {
  PlantedSession session = two_engines();
  PlantedReplay replay{"norm", {3}};
  replay.error_ns = -40000000;
  session.replays = {replay};
  const Check check = check_named(analysed(session), "no negative", "a");
  EXPECT_EQ(check.status, CheckStatus::kFailed);
  EXPECT_NE(check.text.find("norm"), std::string::npos);
}

TEST(Checks, GapClosesWithinATenthOfTheGap) {
  PlantedSession session = two_engines();
  EXPECT_EQ(check_named(analysed(session), "gap closes", "").status, CheckStatus::kHeld);
  session.a.rest_ns = 200000000;
  const Check check = check_named(analysed(session), "gap closes", "");
  EXPECT_EQ(check.status, CheckStatus::kFailed);
  EXPECT_NEAR(*check.value, 199.0, 1e-3);
}

TEST(Checks, SameAnswerComparesTheLogits) {
  PlantedSession session = two_engines();
  EXPECT_EQ(check_named(analysed(session), "same answer", "").status, CheckStatus::kHeld);
  session.top1 = 0.5;
  EXPECT_EQ(check_named(analysed(session), "same answer", "").status, CheckStatus::kFailed);
}

TEST(Checks, QuietSeesWaitingThreadsAndLaunchesApart) {
  PlantedSession session = two_engines();
  session.b.run_delay_ns = 5000000;  // of 100 ms a block
  session.a.group_ppm = {0, 80000, 0};
  const WorkloadLedger ledger = analysed(session);
  EXPECT_NEAR(*check_named(ledger, "quiet", "b", "threads waited").value, 0.05, 1e-9);
  EXPECT_EQ(check_named(ledger, "quiet", "b", "threads waited").status, CheckStatus::kFailed);
  EXPECT_EQ(check_named(ledger, "quiet", "a", "threads waited").status, CheckStatus::kHeld);
  EXPECT_EQ(check_named(ledger, "quiet", "a", "launches").status, CheckStatus::kFailed);
}

TEST(Checks, QuietPrintsNoWaitingThatNobodyMeasured) {
  const WorkloadLedger ledger = altered("\"run_delay_ns\":0", "\"run_delay_ns\":null");
  const Check check = check_named(ledger, "quiet", "a", "0 involuntary switches");
  EXPECT_EQ(check.status, CheckStatus::kHeld);
  EXPECT_EQ(check.text.find("waited 0"), std::string::npos) << check.text;
}

TEST(Checks, QuietDidNotRunWithoutWaitingAndSwitches) {
  const WorkloadLedger ledger = altered("\"involuntary_switches\":0", "\"involuntary_switches\":null");
  EXPECT_EQ(check_named(ledger, "quiet", "a", "threads waited").status, CheckStatus::kHeld);
  std::string text = two_engines().text();
  for (const char* part : {"\"involuntary_switches\":0", "\"run_delay_ns\":0"}) {
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part))
      text.replace(at, std::string(part).size(), "\"other\":0");
  }
  const auto record = parse_record(text, "silent.json");
  ASSERT_TRUE(record) << record.error().message;
  const auto silent = analyse_scoped(*record, testing::planted_scoping(2), {});
  ASSERT_TRUE(silent);
  EXPECT_EQ(check_named(silent->workloads.at(0), "quiet", "a", "the engine reports neither").status,
            CheckStatus::kNotRun);
}

TEST(Checks, WhatDiffersComesFromTheFacts) {
  PlantedSession session = two_engines();
  session.a.isa = {"AVX2", "AVX512F"};
  session.a.flash_attention = "0";
  const Record record = session.record();
  const auto ledger = analyse_scoped(record, testing::planted_scoping(2), {});
  ASSERT_TRUE(ledger);
  const auto& differs = ledger->differs;
  EXPECT_NE(std::find(differs.begin(), differs.end(), "flag fa: llama 0, ik 1"), differs.end());
  EXPECT_NE(
      std::find(differs.begin(), differs.end(), "instruction set: llama is built for AVX512F, ik is not"),
      differs.end());
  EXPECT_NE(std::find(differs.begin(), differs.end(), "engine: llama is llama.cpp 1, ik is ik_llama.cpp 2"),
            differs.end());
}

}  // namespace
}  // namespace opledger::core
