// `opledger regress` against scripted engines, in which one row is planted slow: what is said of the head, by
// which exit code, and which commit of a history `git bisect run` finds with it.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <vector>

#include "command_fixture.h"

namespace opledger::fake {
namespace {

using nlohmann::json;

class Regress : public CommandTest {
 protected:
  /// Measures head (a) against base (b) as long as tests do, into the record.
  void measure() {
    session::CompareOptions short_session = options();
    short_session.workloads = {{8}, {}, {8}};
    const auto outcome = compare(short_session);
    ASSERT_TRUE(outcome) << outcome.error().message;
    ASSERT_FALSE(outcome->error) << outcome->error->message;
    std::ofstream(record_path()) << outcome->record_text;
  }
  [[nodiscard]] int regress_record(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"regress", record_path(), "--json", folder_ + "/regress.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return exit_of(start(arguments));
  }
  [[nodiscard]] int regress_engines(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"regress", "--base",     spec("b"), "--head", spec("a"),
                                       "-m",      model_path(), "-t",      "1",      "-p",
                                       "8",       "--budget",   "5s"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return exit_of(start(arguments));
  }
  [[nodiscard]] json result() const { return json::parse(*text_of(folder_ + "/regress.json")); }
  [[nodiscard]] json workload() const { return result().at("workloads").at(0); }
  /// Scripted times have no noise, so that a rounded nanosecond is real: rows that moved by 0.5% of the pass.
  [[nodiscard]] std::vector<std::string> moved() const {
    std::vector<std::string> scopes;
    const json rows = workload().at("moved");
    for (const json& row : rows) {
      if (std::abs(row.at("share_of_pass_ratio").get<double>()) > 0.005) scopes.push_back(row.at("scope"));
    }
    return scopes;
  }
  void make_attention_slow(const std::string& side, double ns_per_token = 8000) {
    script(side, {{"ns_per_token", {{"default", 2000}, {"FLASH_ATTN_EXT", ns_per_token}}}});
  }
};

TEST_F(Regress, ASlowRowIsARegressionAndNamed) {
  make_attention_slow("a");
  measure();
  EXPECT_EQ(regress_record(), 1) << errors();
  EXPECT_EQ(regress_record({"--bisect"}), 1) << errors();
  EXPECT_EQ(result().at("verdict"), "regressed");
  EXPECT_EQ(moved(), std::vector<std::string>{"attention"});
  // Two layers of 6000 ns more, for each of 8 tokens.
  EXPECT_NEAR(workload().at("moved").at(0).at("gap").at("ms").get<double>(), 2 * 6000 * 8 * 1e-6, 1e-3);
  EXPECT_EQ(workload().at("graph_changes"), json::array());
  EXPECT_NE(output().find("regressed at pp8: a takes"), std::string::npos) << output();
  EXPECT_NE(output().find("Moved: attention"), std::string::npos) << output();
}

TEST_F(Regress, AnEngineAgainstItselfIsNoRegression) {
  measure();
  const int code = regress_record();
  EXPECT_EQ(result().at("verdict"), "same") << output();
  EXPECT_EQ(moved(), std::vector<std::string>{});
  const json checks = workload().at("checks");
  const bool has_failed = std::any_of(checks.begin(), checks.end(),
                                      [](const json& check) { return check.at("status") == "failed"; });
  EXPECT_TRUE(code == 4 || !has_failed) << output();
  EXPECT_TRUE(code == 0 || code == 4) << code;
  EXPECT_EQ(regress_record({"--bisect"}), 0) << "in a bisection the verdict decides alone";
}

TEST_F(Regress, AFasterHeadIsAnImprovementAndGoodInABisection) {
  make_attention_slow("b");
  measure();
  EXPECT_EQ(regress_record({"--bisect"}), 0) << errors();
  EXPECT_EQ(result().at("verdict"), "improved");
}

TEST_F(Regress, DifferencesBelowTheLeastEffectAreNone) {
  make_attention_slow("a", 3000);  // 2 * 1000 * 8 ns of some 0.65 ms: 2.5%
  measure();
  EXPECT_EQ(regress_record({"--min-effect", "10%", "--bisect"}), 0) << errors();
  EXPECT_EQ(result().at("verdict"), "same");
  // The row is real all the same.
  EXPECT_EQ(moved(), std::vector<std::string>{"attention"});
  EXPECT_EQ(regress_record({"--min-effect", "1%"}), 1) << errors();
}

TEST_F(Regress, WhatHeadExecutesInAdditionIsSaid) {
  script("a", {{"copies_attention", true}});
  measure();
  EXPECT_EQ(regress_record(), 1) << errors();
  const json changes = workload().at("graph_changes");
  ASSERT_EQ(changes.size(), 1U) << changes;
  EXPECT_EQ(changes[0].at("change"), "added");
  EXPECT_EQ(changes[0].at("op"), "CONT");
  EXPECT_EQ(changes[0].at("per_pass"), 2);  // one a layer
  EXPECT_EQ(changes[0].at("after"), "f32 [32,8] -> f32 [32,8]");
  EXPECT_NE(output().find("added 2 x CONT"), std::string::npos) << output();
}

TEST_F(Regress, PrintsMarkdownAndJsonAlone) {
  make_attention_slow("a");
  measure();
  EXPECT_EQ(exit_of(start({"regress", record_path(), "--format", "markdown"})), 1);
  EXPECT_EQ(output().rfind("# regressed: ", 0), 0U) << output();
  EXPECT_EQ(exit_of(start({"regress", record_path(), "--json", "-"})), 1);
  EXPECT_EQ(json::parse(output()).at("verdict"), "regressed");
}

TEST_F(Regress, BadInputIsExitTwoAndStopsABisection) {
  const std::vector<std::vector<std::string>> wrong{
      {"regress", "--base", spec("b"), "-m", model_path()},
      {"regress", "--head", spec("a"), "--base", spec("b"), spec("b"), "-m", model_path()},
      {"regress", spec("a"), spec("b"), "-m", model_path()},
      {"regress"},
      {"regress", "--base", spec("b"), "--head", "no-such-engine", "-m", model_path()},
      {"regress", "--base", spec("b"), "--head", spec("a"), "-m", folder_ + "/gone.gguf"},
      {"regress", "--base", spec("b"), "--head", spec("a"), "-m", model_path(), "--min-effect", "lots"},
      {"regress", "--base", spec("b"), "--head", spec("a"), "-m", model_path(), "--format", "html"},
      {"regress", "--base", spec("b"), "--head", spec("a"), "-m", model_path(), "--no-such-option", "1"},
      {"regress", folder_ + "/gone.json"},
      {"regress", model_path(), "-t", "1"},
  };
  for (std::vector<std::string> words : wrong) {
    EXPECT_EQ(exit_of(start(words)), 2) << fmt::format("{}", fmt::join(words, " "));
    EXPECT_EQ(errors().rfind("opledger: ", 0), 0U) << errors();
    const std::string text = errors();
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
    words.emplace_back("--bisect");
    EXPECT_EQ(exit_of(start(words)), 128) << fmt::format("{}", fmt::join(words, " "));
  }
}

TEST_F(Regress, AnEngineThatFailsIsExitThreeAndSkippedInABisection) {
  script("a", {{"faults", {{{"method", "load"}, {"act", "die"}}}}});
  EXPECT_EQ(regress_engines(), 3);
  EXPECT_EQ(regress_engines({"--bisect"}), 125);
}

TEST_F(Regress, AFlagThatThisCommitRefusesSkipsIt) {
  EXPECT_EQ(regress_engines({"-xyz", "1"}), 2) << errors();
  EXPECT_EQ(regress_engines({"-xyz", "1", "--bisect"}), 125) << errors();
}

TEST_F(Regress, WhatCannotBeToldIsExitFourAndSkippedInABisection) {
  measure();
  // The record of a session that ended before it measured.
  std::istringstream lines(record_text());
  std::string cut;
  for (std::string line; std::getline(lines, line) && line.find(R"("type":"group")") == std::string::npos;)
    cut += line + "\n";
  std::ofstream(record_path()) << cut;
  EXPECT_EQ(regress_record(), 4) << output();
  EXPECT_EQ(result().at("verdict"), "cannot tell");
  EXPECT_EQ(regress_record({"--bisect"}), 125);
}

/// A repository whose tree holds an engine's script: what is built of it by `build.sh` is the head.
class Bisect : public Regress {
 protected:
  void SetUp() override {
    Regress::SetUp();
    std::filesystem::create_directories(tree());
    // The built engine lies outside the tree, as `opledger engine add` leaves it.
    std::filesystem::create_symlink(OPLEDGER_FAKE_ENGINE, folder_ + "/head");
    ASSERT_EQ(shell("git init -q ."), 0) << errors();
  }

  [[nodiscard]] std::string tree() const { return folder_ + "/tree"; }
  [[nodiscard]] int shell(const std::string& line) const {
    const std::string whole = fmt::format(
        "cd '{}' && export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 && {}", tree(), line);
    return exit_of(start({"/bin/sh", "-c", whole}));
  }
  /// The commit's id.
  std::string commit(int number, const json& engine, const std::string& build) {
    std::ofstream(tree() + "/engine.json") << engine.dump();
    std::ofstream(tree() + "/build.sh") << build << '\n';
    std::ofstream(tree() + "/notes.txt") << "commit " << number << '\n';
    EXPECT_EQ(
        shell(fmt::format("git add -A && git -c user.name=t -c user.email=t@example.org commit -q -m {} "
                          "&& git rev-parse HEAD",
                          number)),
        0)
        << errors();
    return first_line(output());
  }
  static std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

  const std::string builds_ = "cp engine.json ../head.json";
};

TEST_F(Bisect, FindsTheCommitThatMadeARowSlowAndNamesTheRow) {
  const json fast{{"ns_per_token", {{"default", 2000}}}};
  const json slow{{"ns_per_token", {{"default", 2000}, {"FLASH_ATTN_EXT", 8000}}}};
  std::vector<std::string> ids;
  for (int number = 1; number <= 8; ++number) {
    // Bisecting 1 to 8 tries 4 first, which does not build, so one of its neighbours; 6 is the one to find.
    ids.push_back(commit(number, number < 6 ? fast : slow, number == 4 ? "exit 1" : builds_));
  }
  script("good", fast);
  const std::string line = fmt::format(
      "git bisect start {} {} && git bisect run sh -c 'sh build.sh || exit 125; "
      "{} regress --base {} --head {} -m {} -t 1 -p 8 --budget 60s --bisect'",
      ids.back(), ids.front(), OPLEDGER_COMMAND, spec("good"), spec("head"), model_path());
  EXPECT_EQ(shell(line), 0) << output() << errors();
  const std::string said = output();
  EXPECT_NE(said.find(ids[5] + " is the first bad commit"), std::string::npos) << said;
  EXPECT_NE(said.find("Moved: attention"), std::string::npos) << said;
  EXPECT_EQ(shell("git rev-parse refs/bisect/bad"), 0);
  EXPECT_EQ(first_line(output()), ids[5]);
}

}  // namespace
}  // namespace opledger::fake
