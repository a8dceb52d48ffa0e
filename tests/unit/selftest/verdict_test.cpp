// Ledgers and spins by hand; what a verdict must be follows from the words in its header.
#include "selftest/verdict.h"

#include <array>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "selftest/selftest.h"

namespace opledger::selftest {
namespace {

core::Row row(const std::string& scope, double gap_ms, double half_width_ms, bool is_real) {
  core::Row out;
  out.scope = scope;
  out.gap.ms = gap_ms;
  out.gap.ci_ms = std::array<double, 2>{gap_ms - half_width_ms, gap_ms + half_width_ms};
  out.is_real = is_real;
  return out;
}

/// Gaps are a - b, as in every ledger: planted in b, 1 ms is -1 ms.
core::WorkloadLedger ledger_of(std::vector<core::Row> rows) {
  core::WorkloadLedger ledger;
  ledger.rows = std::move(rows);
  return ledger;
}

const Truth kTruth{1.0, 50, 20000, 0};

TEST(RowVerdict, IsFoundWhereItIsAndAsLargeAsItIs) {
  const RowVerdict verdict =
      judge_row(ledger_of({row("norm", -1.02, 0.05, true), row("rope", 0.01, 0.005, true)}), "norm", kTruth);
  EXPECT_TRUE(verdict.passed()) << verdict.text();
  EXPECT_DOUBLE_EQ(*verdict.gap.ms, 1.02);
  EXPECT_DOUBLE_EQ((*verdict.gap.ci_ms)[0], 0.97);
}

TEST(RowVerdict, TheWrongSignIsNotFound) {
  EXPECT_FALSE(judge_row(ledger_of({row("norm", 1.0, 0.05, true)}), "norm", kTruth).is_found);
}

TEST(RowVerdict, WhatIsNotRealIsNotFound) {
  EXPECT_FALSE(judge_row(ledger_of({row("norm", -1.0, 2.0, false)}), "norm", kTruth).is_found);
}

TEST(RowVerdict, TheTruthMustLieInTheIntervalOrWithinATenthOfIt) {
  EXPECT_TRUE(judge_row(ledger_of({row("norm", -1.2, 0.11, true)}), "norm", kTruth).holds_size);
  EXPECT_FALSE(judge_row(ledger_of({row("norm", -1.2, 0.09, true)}), "norm", kTruth).holds_size);
  EXPECT_FALSE(judge_row(ledger_of({row("norm", -0.8, 0.09, true)}), "norm", kTruth).holds_size);
}

TEST(RowVerdict, AnotherRowCalledRealIsWrongUnlessItIsMuchSmaller) {
  const auto judged = [](double other_ms) {
    return judge_row(ledger_of({row("norm", -1, 0.05, true), row("rope", other_ms, 0.001, true)}), "norm",
                     kTruth);
  };
  EXPECT_TRUE(judged(-0.09).passed());
  EXPECT_FALSE(judged(-0.11).passed());
  EXPECT_NE(judged(0.11).text().find("rope"), std::string::npos);
}

TEST(RowVerdict, WithoutACountThereIsNoTruth) {
  const RowVerdict verdict = judge_row(ledger_of({row("norm", -1, 0.05, true)}), "norm", std::nullopt);
  EXPECT_FALSE(verdict.passed());
  EXPECT_NE(verdict.text().find("counted no spins"), std::string::npos);
}

core::Block block(core::Side side, const std::string& arm, core::SpunWork work, bool is_verify = false) {
  core::Block out;
  out.place.side = side;
  out.place.workload = "tg4@8";
  out.arm = arm;
  out.is_verify = is_verify;
  out.passes.resize(2);
  out.planted = work;
  return out;
}

core::Record record_of(std::vector<core::Block> blocks) {
  core::Record record;
  record.workloads = {{"tg4@8", core::WorkloadKind::kDecode, 4, 8, ""}};
  record.blocks = std::move(blocks);
  return record;
}

TEST(Truth, IsWhatBaselinesHoldOncePerToken) {
  // 40 spins in two passes of four tokens: five a token. On time, 39 of 20 us in the baseline and 80 in the
  // replay: a mean of 20 us, so 100 us a token; side a's five nodes spin 100 ns each.
  const auto truth = truth_of(record_of({
      block(core::Side::kB, "baseline", {40, 39 * 20000 + 900000, 1, 900000}),
      block(core::Side::kB, "replay:norm:same:1", {80, 80 * 20000, 0, 0}),
      block(core::Side::kB, "baseline", {1000, 5000000, 0, 0}, true),
      block(core::Side::kA, "baseline", {40, 4000, 0, 0}),
  }));
  ASSERT_TRUE(truth);
  EXPECT_DOUBLE_EQ(truth->spins, 5);
  EXPECT_DOUBLE_EQ(truth->spin_ns, 20000);
  EXPECT_DOUBLE_EQ(truth->ms, 0.0995);
  EXPECT_DOUBLE_EQ(truth->late_ratio, 1.0 / 120);
}

TEST(Truth, IsUnknownWhereNothingWasCounted) {
  EXPECT_FALSE(truth_of(record_of({block(core::Side::kB, "baseline", {0, 0, 0, 0})})));
  EXPECT_FALSE(truth_of(record_of({})));
  EXPECT_FALSE(truth_of(core::Record{}));
}

core::Check failed(const std::string& name, const char* engine, bool is_shown = true) {
  core::Check check;
  check.name = name;
  check.engine = engine;
  check.status = core::CheckStatus::kFailed;
  check.is_shown = is_shown;
  return check;
}

FaultVerdict::Outcome outcome_of(std::vector<core::Check> checks) {
  core::WorkloadLedger ledger;
  ledger.checks = std::move(checks);
  return judge_fault({"idle_copies", "", {"clocks agree"}, true}, ledger).outcome;
}

TEST(FaultVerdict, FiresOnTheSideThatHasTheFaultAndNowhereElse) {
  using Outcome = FaultVerdict::Outcome;
  EXPECT_EQ(outcome_of({failed("clocks agree", "b")}), Outcome::kFired);
  EXPECT_EQ(outcome_of({failed("clocks agree", "b"), failed("clocks agree", "a")}), Outcome::kFalseAlarm);
  EXPECT_EQ(outcome_of({failed("quiet", "b")}), Outcome::kQuiet);
  EXPECT_EQ(outcome_of({}), Outcome::kQuiet);
}

TEST(FaultVerdict, ACheckThatMeasuredTooLittleHasNoticedNothing) {
  EXPECT_EQ(outcome_of({failed("clocks agree", "b", false)}), FaultVerdict::Outcome::kQuiet);
}

TEST(Rows, TheLargestAMediumAndASmallOneAreTaken) {
  core::WorkloadLedger ledger;
  ledger.a.graph.ms = 100;
  for (const auto& [scope, ms] :
       {std::pair{"norm", 1.0}, std::pair{"dense_proj", 70.0}, std::pair{"rope", 0.5},
        std::pair{"lm_head", 17.0}, std::pair{"attention", 8.0}}) {
    core::Row row;
    row.scope = scope;
    row.stamp_a.ms = ms;
    ledger.rows.push_back(row);
  }
  EXPECT_EQ(default_rows(ledger), (std::vector<std::string>{"dense_proj", "lm_head", "norm"}));
  ledger.rows.resize(2);
  EXPECT_EQ(default_rows(ledger), (std::vector<std::string>{"dense_proj", "norm"}));
}

}  // namespace
}  // namespace opledger::selftest
