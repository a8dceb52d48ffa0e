// Whole judgements of shell commands that print their figures: what must come out is known beforehand.
#include "judge/judge.h"

#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <string>

#include "judge/history.h"

namespace opledger::judge {
namespace {

class JudgeTest : public ::testing::Test {
 protected:
  JudgeTest() {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    options_.log_path = (folder_ / "log").string();
    options_.question.figure = "took ([0-9.]+) ms";
  }

  // Prints numbers of `tenths` of a millisecond that change a little from run to run.
  [[nodiscard]] std::string command(const std::string& name, int tenths) const {
    const std::string count = (folder_ / (name + ".count")).string();
    return fmt::format(R"(n=$(cat '{0}' 2>/dev/null || echo 0); echo $((n + 1)) > '{0}'; )"
                       R"(t=$(({1} + n * 7 % 5)); echo "took $((t / 10)).$((t % 10)) ms")",
                       count, tenths);
  }

  Result<JudgeOutcome> run() {
    return run_judge(options_, clock_, interrupt_, [](const JudgeOutcome&, int) {});
  }

  std::filesystem::path folder_;
  JudgeOptions options_;
  platform::SteadyClock clock_;
  platform::Interrupt interrupt_;
};

TEST_F(JudgeTest, AFasterCommandIsFoundAtTheFirstLook) {
  options_.question.a = command("a", 9700);
  options_.question.b = command("b", 10000);
  const Result<JudgeOutcome> outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->judgement.verdict, Verdict::kFaster);
  EXPECT_NEAR(outcome->judgement.ratio, 0.97, 1e-3);
  EXPECT_EQ(outcome->pairs, 8);
  EXPECT_EQ(outcome->looks, 1);
  EXPECT_EQ(outcome->end_reason, "verdict");
}

TEST_F(JudgeTest, ARateIsBetterWhereItIsHigher) {
  options_.question.a = command("a", 9700);
  options_.question.b = command("b", 10000);
  options_.question.is_higher_better = true;
  const Result<JudgeOutcome> outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->judgement.verdict, Verdict::kSlower);
}

TEST_F(JudgeTest, GoesOnFromItsRecord) {
  // A pair takes some 50 ms, so that the budget ends before the first look.
  options_.question.a = command("a", 10000) + "; sleep 0.02";
  options_.question.b = command("b", 10000) + "; sleep 0.02";
  options_.record_path = (folder_ / "pairs.jsonl").string();
  options_.budget_s = 0.2;
  const Result<JudgeOutcome> first = run();
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->end_reason, "budget");
  ASSERT_GT(first->pairs, 0);
  {
    std::ofstream file(*options_.record_path, std::ios::app);
    file << R"({"type":"pair","a":1)";  // killed while it wrote
  }
  const Result<JudgeOutcome> second = run();
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_GT(second->pairs, first->pairs);
  options_.question.a += " # another";
  const Result<JudgeOutcome> other = run();
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, Error::Kind::kBadInput);
  EXPECT_NE(other.error().message.find("pairs.jsonl"), std::string::npos);
}

TEST_F(JudgeTest, ACommandThatFailsIsNamedWithItsOutput) {
  options_.question.a = "echo no such model; exit 3";
  options_.question.b = command("b", 10000);
  const Result<JudgeOutcome> outcome = run();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, Error::Kind::kFailure);
  EXPECT_NE(outcome.error().message.find("exited with 3: no such model"), std::string::npos)
      << outcome.error().message;
}

TEST_F(JudgeTest, AFigureThatIsNotPrintedIsAFailure) {
  options_.question.a = options_.question.b = "echo nothing";
  const Result<JudgeOutcome> outcome = run();
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().message.find("printed no figure"), std::string::npos);
}

TEST_F(JudgeTest, ACommandThatHangsIsEnded) {
  options_.question.a = options_.question.b = "sleep 60";
  options_.run_limit_ns = 200'000'000;
  const Result<JudgeOutcome> outcome = run();
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().message.find("did not end within"), std::string::npos);
}

TEST_F(JudgeTest, AnExpressionWithoutAGroupIsRefused) {
  for (const char* figure : {"took", "took ([0-9"}) {
    options_.question.figure = figure;
    const Result<JudgeOutcome> outcome = run();
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().kind, Error::Kind::kBadInput);
    EXPECT_NE(outcome.error().message.find("--figure"), std::string::npos);
  }
}

TEST_F(JudgeTest, HistorySaysHowOftenFasterWasConfirmed) {
  const std::string path = (folder_ / "history.jsonl").string();
  options_.question.a = "a";
  options_.question.b = "b";
  JudgeOutcome outcome;
  for (const Verdict verdict :
       {Verdict::kFaster, Verdict::kCannotTell, Verdict::kFaster, Verdict::kSame, Verdict::kFaster}) {
    outcome.judgement.verdict = verdict;
    ASSERT_TRUE(add_to_history(path, options_.question, outcome, "2026-01-02T03:04:05Z"));
  }
  Question other = options_.question;
  other.is_higher_better = true;
  ASSERT_TRUE(add_to_history(path, other, outcome, "2026-01-02T03:04:05Z"));
  const Result<History> history = read_history(path, options_.question);
  ASSERT_TRUE(history) << history.error().message;
  EXPECT_EQ(history->verdicts, 5);
  EXPECT_EQ(history->faster, 3);
  EXPECT_EQ(history->confirmed, 1);  // the first, by the third
  EXPECT_EQ(history->refuted, 1);    // the third, by `same`
  EXPECT_EQ(read_history((folder_ / "none").string(), options_.question)->verdicts, 0);
}

}  // namespace
}  // namespace opledger::judge
