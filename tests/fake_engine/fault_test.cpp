// Engines that misbehave, at every message: always one clear line, the right kind, and the record so far.

#include <string>
#include <vector>

#include "platform/machine_lock.h"
#include "session_fixture.h"

namespace opledger::fake {
namespace {

using nlohmann::json;

struct Case {
  const char* method;
  int at;
  const char* act;
};

class Fault : public FakeSession, public ::testing::WithParamInterface<Case> {
 protected:
  static session::CompareOptions quick(session::CompareOptions options) {
    options.engine_limit_ns = 500'000'000;
    options.budget_s = 5;
    options.workloads = {{8}, {}, {8}};
    return options;
  }
};

TEST_P(Fault, IsOneLineAndAnEndedRecord) {
  script("b",
         {{"faults", {{{"method", GetParam().method}, {"at", GetParam().at}, {"act", GetParam().act}}}}});
  const auto outcome = compare(quick(options()));
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_TRUE(outcome->error);
  EXPECT_EQ(outcome->error->kind, Error::Kind::kFailure) << outcome->error->message;
  EXPECT_EQ(outcome->error->message.find('\n'), std::string::npos);
  EXPECT_EQ(outcome->error->message.rfind("b ", 0) == 0 || outcome->error->message.rfind("b:", 0) == 0, true)
      << outcome->error->message;
  const Result<core::Record> record = core::parse_record(outcome->record_text, "record");
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->end_reason, "failed");
  EXPECT_FALSE(record->events.empty());
}

INSTANTIATE_TEST_SUITE_P(
    At, Fault,
    ::testing::Values(Case{"initialize", 1, "die"}, Case{"estimate", 1, "garbage"}, Case{"load", 1, "hang"},
                      Case{"load", 1, "exit"}, Case{"logits", 1, "die"}, Case{"graph", 1, "error"},
                      Case{"graph", 1, "wrong_id"}, Case{"graph", 1, "hang"}, Case{"prepare", 1, "die"},
                      Case{"prepare", 1, "garbage"}, Case{"measure", 1, "die"}, Case{"measure", 2, "hang"},
                      Case{"measure", 1, "flood_line"}, Case{"measure", 2, "flood_blocks"},
                      Case{"measure", 3, "flood_holds"}, Case{"measure", 3, "garbage"},
                      Case{"shutdown", 1, "die"}, Case{"shutdown", 1, "hang"}),
    [](const auto& given) {
      return std::string(given.param.method) + "_" + std::to_string(given.param.at) + "_" + given.param.act;
    });

class BadEngine : public FakeSession {};

TEST_F(BadEngine, ItsLogIsQuotedAndNamed) {
  script("b", {{"faults", {{{"method", "load"}, {"act", "exit"}}}}});
  const auto outcome = compare(options());
  ASSERT_TRUE(outcome->error);
  EXPECT_NE(outcome->error->message.find("exited with 7"), std::string::npos) << outcome->error->message;
  EXPECT_NE(outcome->error->message.find("fake engine: exit at load 1"), std::string::npos);
  EXPECT_NE(outcome->error->message.find(folder_ + "/logs/b-"), std::string::npos);
}

TEST_F(BadEngine, AnEnvironmentErrorKeepsItsKind) {
  script("b", {{"faults", {{{"method", "load"}, {"act", "environment"}}}}});
  EXPECT_EQ(compare(options())->error->kind, Error::Kind::kEnvironment);
}

TEST_F(BadEngine, AnotherProtocolIsNamedWithOurs) {
  script("b", {{"protocol", "7"}});
  const auto outcome = compare(options());
  ASSERT_TRUE(outcome->error);
  EXPECT_EQ(outcome->error->kind, Error::Kind::kBadInput);
  EXPECT_NE(outcome->error->message.find("\"7\""), std::string::npos);
  EXPECT_NE(outcome->error->message.find("\"2\""), std::string::npos);
}

TEST_F(BadEngine, AnUnknownFlagIsTheEnginesToRefuse) {
  session::CompareOptions wanted = options();
  wanted.flags["xyz"] = "1";
  const auto outcome = compare(wanted);
  ASSERT_TRUE(outcome->error);
  EXPECT_EQ(outcome->error->kind, Error::Kind::kBadInput);
  EXPECT_NE(outcome->error->message.find("-xyz"), std::string::npos);
}

TEST_F(BadEngine, AContextThatDoesNotFitMemoryIsFoundBeforeLoading) {
  script("b", {{"memory_bytes", int64_t{1} << 50}, {"faults", {{{"method", "load"}, {"act", "die"}}}}});
  const auto outcome = compare(options());
  ASSERT_TRUE(outcome->error);
  EXPECT_EQ(outcome->error->kind, Error::Kind::kEnvironment);
  EXPECT_NE(outcome->error->message.find("GiB"), std::string::npos);
}

class BadInput : public FakeSession {
 protected:
  void expect_refused(const session::CompareOptions& options, const std::string& word) {
    const auto outcome = compare(options);
    ASSERT_FALSE(outcome) << "measured";
    EXPECT_NE(outcome.error().kind, Error::Kind::kFailure);
    EXPECT_NE(outcome.error().message.find(word), std::string::npos) << outcome.error().message;
    EXPECT_EQ(outcome.error().message.find('\n'), std::string::npos);
  }
};

TEST_F(BadInput, AMissingModelIsNamed) {
  session::CompareOptions wanted = options();
  wanted.flags["m"] = folder_ + "/none.gguf";
  expect_refused(wanted, "none.gguf");
}

TEST_F(BadInput, AProgramThatIsNoneIsNamed) {
  session::CompareOptions wanted = options();
  wanted.spec_b = "exec:" + model_path();
  expect_refused(wanted, "model.gguf");
}

TEST_F(BadInput, MoreThreadsThanCoresAreRefused) {
  session::CompareOptions wanted = options();
  wanted.flags["t"] = "100000";
  expect_refused(wanted, "-t 100000");
}

TEST_F(BadInput, ARecordThatCannotBeWrittenIsFoundBeforeAnyEngineStarts) {
  session::CompareOptions wanted = options();
  wanted.record_path = folder_ + "/nowhere/record.json";
  expect_refused(wanted, "nowhere");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/logs"));
}

TEST_F(BadInput, ASecondMeasurementIsToldOfTheFirst) {
  const auto lock = platform::MachineLock::acquire(options().lock_path, "opledger compare x y");
  ASSERT_TRUE(lock);
  expect_refused(options(), "opledger compare x y");
}

TEST_F(BadInput, AShortPromptFileSaysWhatIsNeeded) {
  session::CompareOptions wanted = options();
  wanted.prompt_path = folder_ + "/prompt.txt";
  std::ofstream(*wanted.prompt_path) << "short";
  const auto outcome = compare(wanted);
  ASSERT_TRUE(outcome->error);
  EXPECT_EQ(outcome->error->kind, Error::Kind::kBadInput);
  EXPECT_NE(outcome->error->message.find("5 tokens"), std::string::npos) << outcome->error->message;
}

}  // namespace
}  // namespace opledger::fake
