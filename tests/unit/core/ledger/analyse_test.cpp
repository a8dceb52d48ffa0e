// From a record to its ledger with rules in between: scopes, completeness and what cannot be analysed.
#include "core/ledger/analyse.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "synthetic_record.h"

namespace opledger::core {
namespace {

using testing::planted_rules;
using testing::PlantedSession;
using testing::two_engines;

TEST(Analyse, SortsUnitsIntoRowsByTheRules) {
  const auto ledger = analyse(two_engines().record(), planted_rules());
  ASSERT_TRUE(ledger) << ledger.error().message;
  ASSERT_EQ(ledger->workloads.at(0).rows.size(), 3U);
  EXPECT_EQ(ledger->workloads.at(0).rows[0].scope, "dense_proj");
  EXPECT_NEAR(*ledger->workloads.at(0).rows[0].gap.ms, 990.0, 1e-5);
  EXPECT_EQ(ledger->engine_a, "llama");
}

TEST(Analyse, AsksForCompletenessOnBothSides) {
  const auto ledger = analyse(two_engines().record(), planted_rules());
  ASSERT_TRUE(ledger);
  const auto& checks = ledger->workloads.at(0).checks;
  // The planted model lacks nearly everything that a llama has: complete must not be held.
  EXPECT_EQ(
      std::count_if(checks.begin(), checks.end(),
                    [](const Check& c) { return c.name == "complete" && c.status != CheckStatus::kHeld; }),
      2);
  EXPECT_FALSE(ledger->every_check_held());
  EXPECT_EQ(exit_code_of(*ledger), 4);
}

TEST(Analyse, NamesAFamilyWithoutRules) {
  RulesByFamily rules = planted_rules();
  rules.erase("ik_llama.cpp");
  const auto ledger = analyse(two_engines().record(), rules);
  ASSERT_FALSE(ledger);
  EXPECT_EQ(ledger.error().kind, Error::Kind::kBadInput);
  EXPECT_NE(ledger.error().message.find("\"ik_llama.cpp\" of side b"), std::string::npos)
      << ledger.error().message;
}

TEST(ExitCode, IsZeroOnlyWhenEveryCheckThatMustRunHeldAndAVerdictWasReached) {
  Ledger ledger;
  EXPECT_EQ(exit_code_of(ledger), 4);
  WorkloadLedger workload;
  workload.verdict = "slower";
  workload.checks = {{"closes", "a", CheckStatus::kHeld, {}, {}, "x"},
                     {"linear", "a", CheckStatus::kNotRun, {}, {}, "x"}};
  ledger.workloads = {workload};
  EXPECT_EQ(exit_code_of(ledger), 0);
  ledger.workloads[0].checks[0].status = CheckStatus::kNotRun;
  EXPECT_EQ(exit_code_of(ledger), 4);
  ledger.workloads[0].checks[0].status = CheckStatus::kHeld;
  ledger.workloads[0].checks[1].status = CheckStatus::kFailed;
  EXPECT_EQ(exit_code_of(ledger), 4);
  ledger.workloads[0].checks[1].status = CheckStatus::kHeld;
  ledger.workloads[0].verdict = "cannot tell";
  EXPECT_EQ(exit_code_of(ledger), 4);
}

TEST(Differences, ReadFeatureListsAndGatherWhatOneSideHasAlone) {
  std::string text = two_engines().text();
  const auto replace_nth = [&](const std::string& what, const std::string& with, size_t from) {
    const size_t at = text.find(what, from);
    text.replace(at, what.size(), with);
    return at + with.size();
  };
  const size_t next =
      replace_nth("\"build\":{}", R"("build":{"info":"CPU : AVX = 1 | AVX2 = 1 | REPACK = 1 | "})", 0);
  replace_nth("\"build\":{}", R"("build":{"info":"AVX = 1 | AVX2 = 0 | BLAS = 0 | ","extra":"on"})", next);
  const auto record = parse_record(text, "differs.json");
  ASSERT_TRUE(record) << record.error().message;
  const auto ledger = analyse_scoped(*record, testing::planted_scoping(2), {});
  ASSERT_TRUE(ledger);
  EXPECT_EQ(ledger->differs,
            (std::vector<std::string>{"engine: llama is llama.cpp 1, ik is ik_llama.cpp 2",
                                      "build info AVX2: llama 1, ik 0", "build of ik only: extra=on"}));
}

}  // namespace
}  // namespace opledger::core
