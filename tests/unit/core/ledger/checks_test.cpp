// Each check against a planted session in which it must hold, and one in which it must not.
#include <gtest/gtest.h>

#include "synthetic_record.h"

namespace opledger::core {
namespace {

using testing::analysed;
using testing::check_named;
using testing::dense_replay;
using testing::PlantedSession;
using testing::two_engines;

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
