// The real `opledger` command against scripted engines: exit codes, what is kept, and who is left behind.
// Waits are for events (a line in the record, a process gone), with a limit that only a failure reaches.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

#include "command_fixture.h"
#include "core/record/read.h"

namespace opledger::fake {
namespace {

using nlohmann::json;

bool is_process(const std::filesystem::directory_entry& entry) {
  const std::string name = entry.path().filename();
  return name.find_first_not_of("0123456789") == std::string::npos;
}

bool eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 6000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

/// Commands that are stopped while they measure.
class Command : public CommandTest {
 protected:
  [[nodiscard]] pid_t start_compare(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"compare", spec("a"), spec("b"), "-m",       model_path(),
                                       "-t",      "1",       "-p",      "8",        "-n",
                                       "4",       "-d",      "8",       "--record", record_path()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return start(arguments);
  }
  /// Processes that run a program of this test's folder.
  [[nodiscard]] int engines_alive() const {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      if (!is_process(entry)) continue;  // /proc/net/stat is a folder
      const Result<std::string> line = text_of(entry.path().string() + "/cmdline");
      const Result<std::string> status = text_of(entry.path().string() + "/stat");
      if (!line || !status || line->rfind(folder_, 0) != 0) continue;
      if (status->find(") Z ") == std::string::npos) ++count;
    }
    return count;
  }
  /// After the first shared stint: before its end neither side's blocks need be there.
  void hang_b_in_measure() {
    script("b", {{"faults", {{{"method", "measure"}, {"at", 3}, {"act", "hang"}}}}});
  }
  [[nodiscard]] bool is_measuring() const {
    return record_text().find("\"type\":\"block\"") != std::string::npos;
  }
};

TEST_F(Command, PrintsALedgerAndItsJson) {
  const int code = exit_of(start_compare({"--budget", "5s", "--json", folder_ + "/ledger.json"}));
  EXPECT_TRUE(code == 0 || code == 4) << code << errors();
  EXPECT_NE(output().find("dense_proj"), std::string::npos);
  const json ledger = json::parse(*text_of(folder_ + "/ledger.json"));
  EXPECT_EQ(ledger.at("workloads").size(), 2U);
}

TEST_F(Command, ReportPrintsTheSameLedgerFromTheRecordAlone) {
  exit_of(start_compare({"--budget", "5s"}));
  const std::string first = output();
  exit_of(start({"report", record_path()}));
  EXPECT_EQ(output(), first);
}

TEST_F(Command, ReportSaysThatAPackedRecordEndsInsideALine) {
  const std::string packed = record_path() + ".gz";
  exit_of(start({"compare", spec("a"), spec("b"), "-m", model_path(), "-t", "1", "-p", "8", "--budget", "5s",
                 "--record", packed}));
  // Five bytes less: inside the last member, and past the newline before it.
  std::filesystem::resize_file(packed, std::filesystem::file_size(packed) - 5);
  exit_of(start({"report", packed}));
  EXPECT_NE(output().find("ends inside its last line"), std::string::npos) << output() << errors();
}

TEST_F(Command, JsonOnStdoutIsNothingButJson) {
  exit_of(start_compare({"--budget", "5s", "--json", "-"}));
  EXPECT_FALSE(json::parse(output(), nullptr, false).is_discarded()) << output().substr(0, 200);
}

TEST_F(Command, AnEngineThatFailsIsExitThreeAndOneLine) {
  script("b", {{"faults", {{{"method", "prepare"}, {"act", "die"}}}}});
  EXPECT_EQ(exit_of(start_compare({"--budget", "5s"})), 3);
  const std::string text = errors();
  const size_t line = text.find("opledger: b ");
  ASSERT_NE(line, std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin() + static_cast<std::ptrdiff_t>(line), text.end(), '\n'), 1) << text;
  EXPECT_NE(text.find(record_path()), std::string::npos);
  EXPECT_NE(record_text().find("\"failed\""), std::string::npos);
}

TEST_F(Command, BadInputIsExitTwo) {
  EXPECT_EQ(exit_of(start_compare({"--budget", "soon"})), 2);
  EXPECT_EQ(exit_of(start_compare({"--rows", "colour"})), 2);
  EXPECT_EQ(exit_of(start_compare({"--no-such-option", "1"})), 2);
  EXPECT_EQ(exit_of(start_compare({"-xyz", "1"})), 2);
  EXPECT_EQ(exit_of(start({"compare", spec("a"), "-m", model_path()})), 2);
  EXPECT_EQ(exit_of(start({"compare", "no-such-engine", spec("b"), "-m", model_path()})), 2);
}

TEST_F(Command, AnInterruptKeepsTheRecordAndPrintsTheLedger) {
  hang_b_in_measure();
  const pid_t core = start_compare();
  ASSERT_TRUE(eventually([this] { return is_measuring(); })) << errors();
  ::kill(core, SIGINT);
  EXPECT_EQ(exit_of(core), 130);
  EXPECT_NE(output().find("pp8"), std::string::npos) << output();
  const Result<core::Record> record = core::parse_record(record_text(), "record");
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->end_reason, "interrupted");
  EXPECT_TRUE(eventually([this] { return engines_alive() == 0; }));
}

TEST_F(Command, AnOlderRecordOutlivesASessionThatMeasuresNothing) {
  std::ofstream(record_path()) << "older\n";
  script("b", {{"faults", {{{"method", "prepare"}, {"act", "die"}}}}});
  EXPECT_EQ(exit_of(start_compare({"--budget", "5s"})), 3);
  EXPECT_EQ(record_text(), "older\n");
  EXPECT_NE(errors().find("the record so far is " + record_path() + ".part"), std::string::npos) << errors();
  const Result<core::Record> record = core::parse_record(*text_of(record_path() + ".part"), "part");
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->end_reason, "failed");
}

TEST_F(Command, AnOlderRecordMakesWayForTheFirstBlockEvenOfAKilledSession) {
  std::ofstream(record_path()) << "older\n";
  hang_b_in_measure();
  const pid_t core = start_compare();
  ASSERT_TRUE(eventually([this] { return is_measuring(); })) << errors();
  ::kill(core, SIGKILL);
  exit_of(core);
  EXPECT_TRUE(core::parse_record(record_text(), "record"));
  EXPECT_FALSE(std::filesystem::exists(record_path() + ".part"));
  EXPECT_TRUE(eventually([this] { return engines_alive() == 0; }));
}

TEST_F(Command, LeavesNoEngineBehindWhenItIsKilled) {
  hang_b_in_measure();
  const pid_t core = start_compare();
  ASSERT_TRUE(eventually([this] { return is_measuring(); })) << errors();
  EXPECT_EQ(engines_alive(), 2);  // one of them stopped
  ::kill(core, SIGKILL);
  exit_of(core);
  EXPECT_TRUE(eventually([this] { return engines_alive() == 0; }));
  EXPECT_TRUE(core::parse_record(record_text(), "record"));
}

TEST_F(Command, AnEngineKilledFromOutsideIsExitThree) {
  hang_b_in_measure();
  const pid_t core = start_compare();
  ASSERT_TRUE(eventually([this] { return is_measuring(); })) << errors();
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (!is_process(entry)) continue;
    const Result<std::string> line = text_of(entry.path().string() + "/cmdline");
    if (line && line->rfind(program("b"), 0) == 0) ::kill(std::stoi(entry.path().filename()), SIGKILL);
  }
  EXPECT_EQ(exit_of(core), 3);
  EXPECT_NE(errors().find("signal 9"), std::string::npos) << errors();
}

TEST_F(Command, ASecondCompareIsToldWhoMeasures) {
  hang_b_in_measure();
  const pid_t first = start_compare();
  ASSERT_TRUE(eventually([this] { return is_measuring(); })) << errors();
  const pid_t second = start({"compare", spec("a"), spec("a"), "-m", model_path()});
  EXPECT_EQ(exit_of(second), 2);
  EXPECT_NE(errors().find("pid " + std::to_string(first)), std::string::npos) << errors();
  ::kill(first, SIGKILL);
  exit_of(first);
}

TEST_F(Command, GraphShowsCategoriesAndCounts) {
  EXPECT_EQ(exit_of(start({"graph", spec("a"), "-m", model_path(), "-p", "8"})), 0);
  EXPECT_NE(output().find("dense_proj"), std::string::npos) << output();
  EXPECT_EQ(exit_of(start({"graph", spec("a"), "-m", model_path(), "-p", "8", "--json", "-"})), 0);
  EXPECT_EQ(json::parse(output()).at("graphs").size(), 1U);
}

TEST_F(Command, CheckHoldsForAnEngineThatKeepsTheProtocol) {
  EXPECT_EQ(exit_of(start({"engine", "check", spec("a"), "-m", model_path()})), 0) << output();
  EXPECT_EQ(output().find("FAILED"), std::string::npos);
}

TEST_F(Command, SelftestPrintsWhatCameOutAndItsJson) {
  script("a", {{"ns_per_token", {{"default", 20000}}}});
  const std::vector<std::string> selftest{"selftest", spec("a"),
                                          "-m",       model_path(),
                                          "-t",       "1",
                                          "-n",       "4",
                                          "-d",       "8",
                                          "--row",    "norm,dense_proj",
                                          "--budget", "5s",
                                          "--faults", "changed_result",
                                          "--json",   folder_ + "/selftest.json"};
  EXPECT_EQ(exit_of(start(selftest)), 0) << output() << errors();
  EXPECT_NE(output().find("Everything planted was found"), std::string::npos) << output();
  const json report = json::parse(*text_of(folder_ + "/selftest.json"));
  EXPECT_EQ(report.at("rows").size(), 2U);
  EXPECT_EQ(report.at("faults").at(0).at("outcome"), "fired");
  EXPECT_EQ(report.at("passed"), true);
}

TEST_F(Command, SelftestOfAnEngineThatIgnoresThePlantIsExitFour) {
  script("a", {{"ns_per_token", {{"default", 20000}}}, {"ignores_plant", true}});
  const auto selftest = [this](const std::vector<std::string>& more) {
    std::vector<std::string> words{"selftest", spec("a"), "-m", model_path(), "-t",       "1",
                                   "-n",       "4",       "-d", "8",          "--budget", "5s"};
    words.insert(words.end(), more.begin(), more.end());
    return exit_of(start(words));
  };
  EXPECT_EQ(selftest({"--row", "norm", "--faults", "none"}), 4) << output() << errors();
  EXPECT_NE(output().find("not found"), std::string::npos) << output();
  EXPECT_EQ(selftest({"--row", "no_such_row"}), 2);
  EXPECT_EQ(selftest({"--faults", "no_such_fault"}), 2);
  EXPECT_EQ(selftest({"--share", "200%"}), 2);
  EXPECT_EQ(selftest({"-p", "8"}), 2);
  script("a", {{"cannot_plant", true}});
  EXPECT_EQ(selftest({"--faults", "none"}), 2);
  EXPECT_NE(errors().find("capabilities.plant"), std::string::npos) << errors();
  script("a", {{"faults", {{{"method", "prepare"}, {"act", "die"}}}}});
  EXPECT_EQ(selftest({}), 3);
}

struct Breach {
  const char* name;
  const char* script;
  const char* check;
};

class Conformance : public Command, public ::testing::WithParamInterface<Breach> {};

TEST_P(Conformance, SeesABreach) {
  script("a", json::parse(GetParam().script));
  EXPECT_EQ(exit_of(start({"engine", "check", spec("a"), "-m", model_path()})), 3);
  const size_t failed = output().find(std::string("FAILED   ") + GetParam().check);
  EXPECT_NE(failed, std::string::npos) << output();
}

INSTANTIATE_TEST_SUITE_P(
    Of, Conformance,
    ::testing::Values(
        Breach{"version", R"({"protocol": "1"})", "says who it is"},
        Breach{"digest", R"({"breaking_units": [3]})", "pp16: every arm gives the baseline's logits"},
        Breach{"stamp", R"({"stamp_changes_digest": true})", "tg4@8: every arm gives the baseline's logits"},
        Breach{"hold", R"({"never_holds": true})", "tg4@8: holds after every burst"},
        Breach{"state", R"({"state_changes": true})", "pp16: every arm leaves the baseline's KV and state"},
        Breach{"plant", R"({"miscounts_plant": true})", "tg4@8: plants work and counts it"},
        Breach{"death", R"({"faults": [{"method": "measure", "act": "die"}]})",
               "pp16: measures a block for every arm of a turn"},
        Breach{"garbage", R"({"faults": [{"method": "prepare", "act": "garbage"}]})",
               "pp16: prepares every arm"},
        Breach{"exit", R"({"faults": [{"method": "shutdown", "act": "exit"}]})",
               "exits with 0 after shutdown"}),
    [](const auto& given) { return given.param.name; });

}  // namespace
}  // namespace opledger::fake
