// Whole self-tests of a scripted engine: one that does what it is asked, and ones that do not.
#include "selftest/selftest.h"

#include <algorithm>
#include <string>
#include <vector>

#include "session_fixture.h"

namespace opledger::fake {
namespace {

using nlohmann::json;
using Outcome = selftest::FaultVerdict::Outcome;

class Selftest : public FakeSession {
 protected:
  // 5% of a pass of 80 us would be one spin of 4 us: as long as two units, so nothing is lost to rounding.
  void SetUp() override {
    FakeSession::SetUp();
    engine(json::object());
  }

  void engine(json more) {
    more["ns_per_token"] = {{"default", 2000}, {"MUL_MAT", 20000}};
    script("a", std::move(more));
  }

  [[nodiscard]] selftest::Options wanted() const {
    selftest::Options wanted;
    wanted.compare = options();
    wanted.compare.spec_b = wanted.compare.spec_a;
    wanted.compare.workloads = {{}, {4}, {8}};
    wanted.compare.largest_probe_bytes = 0;
    wanted.rows = std::vector<std::string>{"norm"};
    return wanted;
  }

  Result<selftest::Report> run(const selftest::Options& wanted) {
    const platform::Interrupt interrupt;
    session::Progress progress(false, clock_);
    return selftest::run_selftest(wanted, clock_, interrupt, progress);
  }
};

TEST_F(Selftest, FindsWhatIsPlantedInEveryRow) {
  selftest::Options all = wanted();
  all.rows = std::vector<std::string>{"dense_proj", "attention", "norm", "lm_head"};
  const auto report = run(all);
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->rows.size(), 4U);
  for (const selftest::RowVerdict& row : report->rows) {
    EXPECT_TRUE(row.passed()) << row.row << ": " << row.text();
    ASSERT_TRUE(row.truth);
    EXPECT_NEAR(row.truth->ms, 0.05 * report->pass_ms, 0.001 * report->pass_ms) << row.row;
    EXPECT_NEAR(*row.gap.ms, row.truth->ms, 0.02 * row.truth->ms) << row.row;
    ASSERT_TRUE(row.copies_ms) << row.row << ": not replayed";
    EXPECT_NEAR(*row.copies_ms, row.truth->ms, 0.02 * row.truth->ms) << row.row << ": a replay pays it too";
  }
  EXPECT_TRUE(report->passed());
}

TEST_F(Selftest, PlantsInTheLargestAMediumAndASmallRowUnlessTold) {
  selftest::Options some = wanted();
  some.rows.reset();
  const auto report = run(some);
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_GE(report->rows.size(), 2U);
  EXPECT_EQ(report->rows.front().row, "dense_proj");
}

TEST_F(Selftest, FindsWhatIsPlantedInAPrefill) {
  selftest::Options prefill = wanted();
  prefill.compare.workloads = {{8}, {}, {}};
  const auto report = run(prefill);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->passed()) << report->rows.front().text();
}

TEST_F(Selftest, AnEngineThatOnlyCountsIsCaught) {
  engine({{"ignores_plant", true}});
  const auto report = run(wanted());
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_FALSE(report->rows.front().is_found);
  EXPECT_FALSE(report->passed());
}

TEST_F(Selftest, AnEngineThatCannotPlantIsToldSo) {
  engine({{"cannot_plant", true}});
  const auto report = run(wanted());
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, Error::Kind::kBadInput);
  EXPECT_NE(report.error().message.find("capabilities.plant"), std::string::npos) << report.error().message;
}

TEST_F(Selftest, ARowThatIsNotThereIsNamedWithThoseThatAre) {
  selftest::Options other = wanted();
  other.rows = std::vector<std::string>{"moe_experts"};
  const auto report = run(other);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, Error::Kind::kBadInput);
  EXPECT_NE(report.error().message.find("moe_experts"), std::string::npos);
  EXPECT_NE(report.error().message.find("dense_proj"), std::string::npos);
}

TEST_F(Selftest, EveryFaultIsNoticedByItsCheck) {
  selftest::Options faulty = wanted();
  faulty.faults = selftest::known_faults();
  const auto report = run(faulty);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->false_alarms.empty()) << report->false_alarms.front();
  ASSERT_EQ(report->faults.size(), 5U);
  for (const selftest::FaultVerdict& fault : report->faults)
    EXPECT_EQ(fault.outcome, Outcome::kFired) << fault.fault << ": " << fault.text;
  EXPECT_TRUE(report->passed());
}

TEST_F(Selftest, AFaultThatIsNotPlantedLeavesItsCheckQuiet) {
  engine({{"ignores_faults", true}});
  selftest::Options faulty = wanted();
  faulty.faults = selftest::known_faults();
  const auto report = run(faulty);
  ASSERT_TRUE(report) << report.error().message;
  for (const selftest::FaultVerdict& fault : report->faults) {
    const bool is_in_the_rules = fault.fault == "unsorted_node";
    EXPECT_EQ(fault.outcome, is_in_the_rules ? Outcome::kFired : Outcome::kQuiet)
        << fault.fault << fault.text;
  }
  EXPECT_FALSE(report->passed());
}

TEST_F(Selftest, AFaultThatIsThereWithoutBeingPlantedIsAFalseAlarm) {
  engine({{"stamp_changes_digest", true}});
  const auto report = run(wanted());
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_FALSE(report->false_alarms.empty());
  EXPECT_FALSE(report->passed());
}

TEST_F(Selftest, ANodeInNoCategoryIsNamed) {
  selftest::Options faulty = wanted();
  faulty.faults = {selftest::known_faults().front()};
  const auto report = run(faulty);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_NE(report->faults.front().text.find("are in no category"), std::string::npos);
}

TEST_F(Selftest, AnEngineThatDiesIsAFailure) {
  engine({{"faults", {{{"method", "prepare"}, {"act", "die"}}}}});
  const auto report = run(wanted());
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, Error::Kind::kFailure);
}

}  // namespace
}  // namespace opledger::fake
