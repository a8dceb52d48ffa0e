// A planted change of one engine, as `opledger regress` prints it in each format.
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <utility>

#include "../core/ledger/synthetic_record.h"
#include "golden.h"
#include "report/numbers.h"
#include "report/report.h"

namespace opledger::report {
namespace {

using core::GraphChange;
using core::GraphChangeKind;
using core::Regression;
using testing::base_and_head;
using testing::PlantedSession;

Regression regression_in(const PlantedSession& session, double min_effect_ratio = 0.02) {
  auto regression = core::regression_of(session.record(), testing::planted_rules(), min_effect_ratio);
  EXPECT_TRUE(regression.is_ok()) << (regression ? "" : regression.error().message);
  return regression ? std::move(*regression) : Regression{};
}

// Slower, with a row that moved back, a replay that lies in one row, and every kind of graph change.
Regression regressed() {
  PlantedSession session = base_and_head();
  testing::PlantedReplay attention{"attention", {1}};
  attention.error_ns = 40000000;
  session.replays = {testing::dense_replay(), attention};
  Regression regression = regression_in(session);
  regression.workloads.at(0).graph_changes =
      std::vector<GraphChange>{GraphChange{GraphChangeKind::kAdded, "CONT", "copy_transpose", "", 30,
                                           std::nullopt, "f32 [64,9,512] -> f32 [576,512]"},
                               GraphChange{GraphChangeKind::kChanged, "MUL_MAT", "dense_proj", "attn_q", 30,
                                           "q4_0 [576,576], f32 [576,512] -> f32 [576,512]",
                                           "q8_0 [576,576], f32 [576,512] -> f32 [576,512]"},
                               GraphChange{GraphChangeKind::kChanged, "RMS_NORM", "norm", "", 61,
                                           "one unit RMS_NORM+MUL", "a unit of its own"},
                               GraphChange{GraphChangeKind::kRemoved, "SCALE", "elementwise", "", 1,
                                           "f32 [576,512] -> f32 [576,512]", std::nullopt}};
  return regression;
}

Regression unchanged() {
  PlantedSession session = base_and_head();
  session.a.unit_ns = session.b.unit_ns;
  return regression_in(session);
}

TEST(RegressionReport, TerminalOutputIsAsKept) {
  expect_golden(render(regressed(), Format::kTerminal, {}), "regress.txt");
}
TEST(RegressionReport, MarkdownOutputIsAsKept) {
  expect_golden(render(regressed(), Format::kMarkdown, {}), "regress.md");
}
TEST(RegressionReport, JsonOutputIsAsKept) {
  expect_golden(render(regressed(), Format::kJson, {}), "regress.json");
}

TEST(RegressionReport, JsonIsValidAgainstItsSchema) {
  PlantedSession poor = base_and_head();
  poor.groups = 1;
  poor.has_price = false;
  Regression graphless = unchanged();
  graphless.workloads.at(0).graph_changes.reset();
  for (const Regression& regression :
       {regressed(), unchanged(), regression_in(poor), graphless, Regression{}})
    expect_valid(render(regression, Format::kJson, {}), "regress.schema.json");
}

TEST(RegressionReport, NamesNoRowThatDidNotMove) {
  // A check that did not run names its rows all the same.
  const std::string text = render(unchanged(), Format::kTerminal, {});
  EXPECT_EQ(text.find("\n  attention"), std::string::npos) << text;
  EXPECT_NE(text.find("nothing: both execute the same operations"), std::string::npos) << text;
  EXPECT_EQ(render(unchanged(), Format::kMarkdown, {}).find("**attention**"), std::string::npos);
  EXPECT_NE(render(regressed(), Format::kTerminal, {}).find("\n  attention"), std::string::npos);
  EXPECT_NE(render(regressed(), Format::kMarkdown, {}).find("**attention**"), std::string::npos);
  EXPECT_NE(render(unchanged(), Format::kJson, {}).find("\"moved\": []"), std::string::npos);
}

TEST(RegressionReport, EveryFailedCheckIsInEveryFormat) {
  for (const Format format : {Format::kTerminal, Format::kMarkdown, Format::kJson}) {
    const std::string text = render(regressed(), format, {});
    EXPECT_NE(text.find("failed"), std::string::npos);
    EXPECT_NE(text.find("neighbours - increment -40.00"), std::string::npos) << text;
  }
}

TEST(RegressionReport, TerminalStaysWithinAHundredColumns) {
  Regression regression = regressed();
  regression.workloads[0].moved[0].share_of_pass_ratio = -0.995;
  std::istringstream lines(render(regression, Format::kTerminal, {}));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), 100U) << line;
}

TEST(RegressionReport, ListsTwentyGraphChangesAndCountsTheOthers) {
  Regression regression = unchanged();
  regression.workloads[0].graph_changes->assign(
      23, GraphChange{GraphChangeKind::kAdded, "CONT", "copy_transpose", "", 1, std::nullopt, "f32 [1]"});
  const std::string text = render(regression, Format::kMarkdown, {});
  EXPECT_NE(text.find("- 3 more, which --json lists"), std::string::npos) << text;
}

TEST(RegressionReport, NamesOfAGraphForgeNoLine) {
  Regression regression = unchanged();
  regression.workloads[0].graph_changes = std::vector<GraphChange>{GraphChange{
      GraphChangeKind::kAdded, "EVIL\nchecks\x1b[2J", "unsorted", "", 1, std::nullopt, "f32 [1]"}};
  for (const Format format : {Format::kTerminal, Format::kMarkdown}) {
    const std::string text = render(regression, format, {});
    EXPECT_NE(text.find("EVIL?checks?[2J"), std::string::npos) << text;
  }
}

std::string sentence(const Regression& regression) {
  return headline(regression.ledger.workloads.at(0), regression.workloads.at(0), regression.min_effect_ratio);
}

TEST(RegressionHeadline, SaysHowMuchSlowerAndWhichRowsMoved) {
  // 1405 over 1366 ms, launch by launch: 1.02855 times factors of 0.998, 1.001 and 1.001.
  EXPECT_EQ(sentence(regression_in(base_and_head())),
            "regressed at pp512: head takes 2.86% more time than base (+39.00 ms, time ratio 1.029 [1.024, "
            "1.033]). Moved: attention +40.00 ms, norm -1.000 ms. Not run: clocks agree, complete.");
}

TEST(RegressionHeadline, SaysWithinWhatTheyAreTheSame) {
  EXPECT_EQ(sentence(unchanged())
                .rfind("same within 2% at pp512: head takes as long as base (time ratio 1.000 [", 0),
            0U)
      << sentence(unchanged());
  EXPECT_NE(sentence(unchanged()).find("No row moved."), std::string::npos);
}

TEST(RegressionHeadline, SaysWhyNothingCanBeTold) {
  PlantedSession session = base_and_head();
  session.groups = 2;
  EXPECT_EQ(sentence(regression_in(session)).rfind("cannot tell at pp512: the gap of", 0), 0U)
      << sentence(regression_in(session));
  // The ledger tells 2.9% from 0, but not from 2.7%.
  EXPECT_EQ(
      sentence(regression_in(base_and_head(), 0.03)).rfind("cannot tell at pp512: the time ratio 1.029 [", 0),
      0U)
      << sentence(regression_in(base_and_head(), 0.03));
}

TEST(RegressionHeadline, NamesWhatLiesOutsideTheGraph) {
  PlantedSession session = base_and_head();
  session.a.unit_ns = session.b.unit_ns;
  session.a.outside_ns += 100000000;
  EXPECT_NE(sentence(regression_in(session)).find("Moved: what lies outside the graph +100.0 ms."),
            std::string::npos)
      << sentence(regression_in(session));
}

}  // namespace
}  // namespace opledger::report
