// A planted session's ledger as each format prints it.
#include "report/report.h"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <unistd.h>

#include "../core/ledger/synthetic_record.h"
#include "golden.h"
#include "report/numbers.h"

namespace opledger::report {
namespace {

using testing::two_engines;

core::Ledger ledger_of(const testing::PlantedSession& session) {
  const core::Record record = session.record();
  const auto ledger =
      core::analyse_scoped(record, testing::planted_scoping(core::ledger_inputs(record).size()), {});
  EXPECT_TRUE(ledger.is_ok());
  return ledger ? *ledger : core::Ledger{};
}

// One replay that agrees, one that lies, one row not replayed; an engine with another instruction set.
core::Ledger example() {
  testing::PlantedSession session = two_engines();
  session.a.isa = {"AVX2", "AVX512F"};
  testing::PlantedReplay dense{"dense_proj", {0, 2}};
  dense.copy_ppm = 990000;
  dense.beside_ppm = 900000;
  testing::PlantedReplay attention{"attention", {1}};
  attention.error_ns = 40000000;
  session.replays = {dense, attention};
  return ledger_of(session);
}

TEST(Report, TerminalOutputIsAsKept) {
  expect_golden(render(example(), Format::kTerminal, {}), "ledger.txt");
}
TEST(Report, MarkdownOutputIsAsKept) {
  expect_golden(render(example(), Format::kMarkdown, {}), "ledger.md");
}
TEST(Report, JsonOutputIsAsKept) {
  expect_golden(render(example(), Format::kJson, {}), "ledger.json");
}

TEST(Report, TerminalStaysWithinAHundredColumns) {
  core::Ledger ledger = example();
  ledger.workloads[0].rows[0].scope = "linear_attention+copy_transpose+state_write+moe_combine";
  ledger.workloads[0].rows[0].gap = {-17614.25, std::array<double, 2>{-18001.5, -17200.125}};
  std::istringstream lines(render(ledger, Format::kTerminal, {}));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), 100U) << line;
}

TEST(Report, WorkThatOneEngineDoesNotHaveIsNoneNotUnknown) {
  core::Ledger ledger = example();
  ledger.workloads[0].rows[2].nodes_b = 0;
  EXPECT_NE(render(ledger, Format::kMarkdown, {}).find("| **norm** | 10.00 ± 0.12 | none |"),
            std::string::npos);
}

TEST(Report, ColoursOnlyWhenAskedAndNeverAgainstNoColor) {
  EXPECT_EQ(render(example(), Format::kTerminal, {}).find('\x1b'), std::string::npos);
  EXPECT_NE(render(example(), Format::kTerminal, {true}).find('\x1b'), std::string::npos);
  EXPECT_EQ(render(example(), Format::kMarkdown, {true}).find('\x1b'), std::string::npos);
  EXPECT_TRUE(wants_colour(true, nullptr));
  EXPECT_TRUE(wants_colour(true, ""));
  EXPECT_FALSE(wants_colour(true, "1"));
  EXPECT_FALSE(wants_colour(false, nullptr));
}

TEST(Report, AnEnginesNameForgesNoLineAndCommandsNoTerminal) {
  testing::PlantedSession session = two_engines();
  session.a.name = "evil\x1b[2J\nchecks\n  held    everything\x7f\xc2\x9b";
  const core::Ledger ledger = ledger_of(session);
  for (const Format format : {Format::kTerminal, Format::kMarkdown}) {
    const std::string text = render(ledger, format, {});
    EXPECT_NE(text.find("evil?[2J?checks?"), std::string::npos) << text;
    EXPECT_EQ(text.find("\n  held    everything"), std::string::npos) << text;
    for (const char* raw : {"\x1b", "\x7f", "\xc2\x9b"}) EXPECT_EQ(text.find(raw), std::string::npos);
  }
}

TEST(Report, EveryFailedCheckIsInEveryFormat) {
  const core::Ledger ledger = example();
  for (const Format format : {Format::kTerminal, Format::kMarkdown, Format::kJson}) {
    const std::string text = render(ledger, format, {});
    EXPECT_NE(text.find("failed"), std::string::npos);
    EXPECT_NE(text.find("neighbours - increment -40.00"), std::string::npos);
  }
}

TEST(Report, JsonIsValidAgainstItsSchema) {
  testing::PlantedSession poor = two_engines();
  poor.groups = 1;
  poor.has_price = false;
  for (const core::Ledger& ledger : {example(), ledger_of(poor), core::Ledger{}})
    expect_valid(render(ledger, Format::kJson, {}), "ledger.schema.json");
}

TEST(Report, RecordsAreValidAgainstTheirSchema) {
  if (std::system("python3 -c 'import jsonschema' 2>/dev/null") != 0)
    FAIL() << "python3-jsonschema is not installed: run tools/install_packages tests";
  testing::PlantedSession session = two_engines();
  session.replays = {{"norm", {3}, "sibling", 4}};
  const std::string path = ::testing::TempDir() + "opledger_record_" + std::to_string(::getpid()) + ".jsonl";
  core::Event event{"excluded", core::Side::kA, "text", "pp512", core::UnitName{0, 1}, "changed the digest"};
  std::ofstream(path) << session.text() << core::record_line(event) << "\n"
                      << core::record_line(core::Event{"note", std::nullopt, "text", "", std::nullopt, ""})
                      << "\n";
  const std::string command =
      "python3 -c \"import json,sys,jsonschema; s=json.load(open(sys.argv[2])); "
      "v=jsonschema.Draft202012Validator(s); [v.validate(json.loads(l)) for l in open(sys.argv[1])]\" " +
      path + " " + OPLEDGER_SOURCE_DIR + "/schema/record.schema.json";
  EXPECT_EQ(std::system(command.c_str()), 0) << path;
}

TEST(Headline, SaysWhereTheGapLives) {
  const core::Ledger ledger = ledger_of(two_engines());
  EXPECT_EQ(headline(ledger),
            "llama is 4.14x slower than ik at pp512 (+1036 ms): dense_proj holds 96% of the gap. "
            "Not run: clocks agree, complete.");
}

TEST(Headline, NamesNoRowThatHoldsNextToNothing) {
  core::Ledger ledger = ledger_of(two_engines());
  for (core::Row& row : ledger.workloads[0].rows) row.is_real = row.scope == "norm";  // 2 of 1036 ms
  EXPECT_EQ(headline(ledger),
            "llama is 4.14x slower than ik at pp512 (+1036 ms): no row that holds a tenth of it exceeds the "
            "noise. Not run: clocks agree, complete.");
  // A row that pulls the other way is no answer either.
  for (core::Row& row : ledger.workloads[0].rows) row.share_of_gap = -0.5;
  EXPECT_NE(headline(ledger).find("no row that holds a tenth"), std::string::npos);
}

TEST(Headline, ClaimsNothingWithoutIntervals) {
  // Means of two groups: 1366 * 1.0025 - 330 * 1.003 = 1038.4.
  testing::PlantedSession session = two_engines();
  session.groups = 2;
  EXPECT_EQ(headline(ledger_of(session)),
            "Nothing can be told about llama at pp512: the gap of +1038 ms has no interval below three "
            "launch groups. Not run: clocks agree, closes, complete.");
  EXPECT_EQ(headline(core::Ledger{}), "Nothing can be told: the record holds no workload.");
}

TEST(Headline, NamesFailedChecks) {
  testing::PlantedSession session = two_engines();
  session.bad_digest_arm = "stamp";
  EXPECT_NE(headline(ledger_of(session)).find("Failed checks: identical."), std::string::npos);
}

TEST(Headline, SaysThatTwoEnginesAreTheSame) {
  testing::PlantedSession session = two_engines();
  session.b = session.a;
  session.b.name = "ik";
  EXPECT_EQ(headline(ledger_of(session)),
            "llama and ik are equally fast at pp512 (time ratio 1.000 [1.000, 1.000]). "
            "Not run: clocks agree, complete.");
}

TEST(Headline, CallsNothingOutsideTheGraphThatMayBeZero) {
  core::Ledger ledger = ledger_of(two_engines());
  ledger.workloads[0].wall_minus_graph_gap = {900.0, std::array<double, 2>{-100.0, 1900.0}};
  EXPECT_EQ(headline(ledger).find("outside the graph"), std::string::npos);
  ledger.workloads[0].wall_minus_graph_gap = {900.0, std::array<double, 2>{100.0, 1700.0}};
  EXPECT_NE(headline(ledger).find("87% of the gap lies outside the graph"), std::string::npos);
}

TEST(Numbers, UnknownIsADashAndNoiseIsABound) {
  EXPECT_EQ(cost_text({}), "-");
  EXPECT_EQ(cost_text({12.3456, std::nullopt}), "12.35");
  EXPECT_EQ(cost_text({1200.0, std::array<double, 2>{1185.0, 1215.0}}), "1200 ± 15");
  EXPECT_EQ(cost_text({0.01, std::array<double, 2>{-0.02, 0.04}}), "< 0.040");
  EXPECT_EQ(cost_text({-12.0, std::array<double, 2>{-13.0, -11.0}}), "-12.00 ± 1.00");
  EXPECT_EQ(gap_text({0.3, std::nullopt}, 0.5), "< 0.500");
  EXPECT_EQ(gap_text({-24.5, std::nullopt}, 0.5), "-24.50");
  EXPECT_EQ(gap_text({}, 0.5), "-");
  EXPECT_EQ(share_text(std::nullopt), "-");
  EXPECT_EQ(interval_text(std::array<double, 2>{-1.5, 12.25}), "[-1.50, +12.25]");
}

TEST(Format, RefusesUnknownNames) {
  EXPECT_TRUE(format_named("markdown"));
  const auto format = format_named("html");
  ASSERT_FALSE(format);
  EXPECT_EQ(format.error().message, "--format html: give terminal, markdown or json");
}

}  // namespace
}  // namespace opledger::report
