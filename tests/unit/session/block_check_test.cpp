// One good block by hand, and every way it may go wrong.
#include "session/block_check.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

namespace opledger::session {
namespace {

using nlohmann::json;

json good_block() {
  const std::string digest(32, 'a');
  return {{"workload", "pp8"},
          {"arm", "stamp"},
          {"verify", false},
          {"passes", {{{"wall_ns", 11}, {"graph_ns", 10}, {"instrument_ns", 0}, {"digest", 0}}}},
          {"digests", {{digest}}},
          {"logits", "ok"},
          {"unit_ns", {{3, 4}}},
          {"head_ns", {1}},
          {"tail_ns", {2}},
          {"copy_ns", nullptr},
          {"state_digest", nullptr},
          {"threads", {{{"cpu_ns", 5}, {"run_delay_ns", nullptr}}}},
          {"voluntary_switches", 0},
          {"involuntary_switches", nullptr},
          {"started_ns", 1},
          {"ended_ns", 2},
          {"elapsed_ns", 1}};
}

const ExpectedBlock kAsked{"stamp", 1, false};

TEST(BlockCheck, TakesAGoodBlock) {
  const Status status = check_block(good_block(), "pp8", kAsked, 2);
  EXPECT_TRUE(status) << (status ? "" : status.error().message);
}

TEST(BlockCheck, TakesABaselineWithoutUnitTimes) {
  json block = good_block();
  block["arm"] = "baseline";
  block["unit_ns"] = block["head_ns"] = block["tail_ns"] = nullptr;
  EXPECT_TRUE(check_block(block, "pp8", {"baseline", 1, false}, 2));
}

TEST(BlockCheck, AStampedArmNeedsEveryPartOfThePass) {
  for (const char* arm : {"stamp", "stamped_replay:all:same:1"}) {
    for (const char* key : {"unit_ns", "head_ns", "tail_ns"}) {
      json block = good_block();
      block["arm"] = arm;
      block.erase(key);
      const Status status = check_block(block, "pp8", {arm, 1, false}, 2);
      ASSERT_FALSE(status) << arm << key;
      EXPECT_NE(status.error().message.find(key), std::string::npos) << status.error().message;
    }
  }
}

TEST(BlockCheck, ImpossibleTimesOfAPassAreNamed) {
  struct Given {
    const char* key;
    int64_t ns;
  };
  for (const Given given : {Given{"wall_ns", 9}, Given{"graph_ns", 0}, Given{"graph_ns", 12},
                            Given{"wall_ns", 1'000'000'000'000'001}, Given{"instrument_ns", -1}}) {
    json block = good_block();
    block["passes"][0][given.key] = given.ns;
    const Status status = check_block(block, "pp8", kAsked, 2);
    ASSERT_FALSE(status) << given.key << given.ns;
    EXPECT_NE(status.error().message.find("_ns"), std::string::npos) << status.error().message;
  }
}

TEST(BlockCheck, PlantedWorkIsCountedWholeOrNotAtAll) {
  const json good{{"spins", 4}, {"spun_ns", 80000}, {"late_spins", 1}, {"late_ns", 50000}};
  json block = good_block();
  block["planted"] = good;
  EXPECT_TRUE(check_block(block, "pp8", kAsked, 2));
  for (const auto& [key, value] : {std::pair{"spins", json()}, std::pair{"spun_ns", json(-1)},
                                   std::pair{"late_spins", json(5)}, std::pair{"late_ns", json(80001)}}) {
    block["planted"] = good;
    block["planted"][key] = value;
    const Status status = check_block(block, "pp8", kAsked, 2);
    ASSERT_FALSE(status) << key;
    EXPECT_NE(status.error().message.find("planted"), std::string::npos) << status.error().message;
  }
}

TEST(BlockCheck, TheTimesOfAnUntimedBlockMeanNothing) {
  json block = good_block();
  block["verify"] = true;
  block["passes"][0]["wall_ns"] = block["passes"][0]["graph_ns"] = 0;
  block["head_ns"] = nullptr;
  EXPECT_TRUE(check_block(block, "pp8", {"stamp", 1, true}, 2));
}

struct Wrong {
  const char* key;
  json value;
};

class BadBlock : public ::testing::TestWithParam<Wrong> {};

TEST_P(BadBlock, IsAFailureThatNamesTheKey) {
  json block = good_block();
  block[GetParam().key] = GetParam().value;
  const Status status = check_block(block, "pp8", kAsked, 2);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, Error::Kind::kFailure);
  EXPECT_NE(status.error().message.find(GetParam().key), std::string::npos) << status.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    Keys, BadBlock,
    ::testing::Values(Wrong{"workload", "pp9"}, Wrong{"arm", "baseline"}, Wrong{"verify", true},
                      Wrong{"passes", json::array()}, Wrong{"passes", "many"},
                      Wrong{"digests", json::array()}, Wrong{"digests", {{"short"}}},
                      Wrong{"digests", json::array({json::array()})}, Wrong{"shared_inputs", 1},
                      Wrong{"ended_ns", 0}, Wrong{"elapsed_ns", 2}, Wrong{"elapsed_ns", nullptr},
                      Wrong{"logits", "fine"}, Wrong{"unit_ns", {{3}}}, Wrong{"unit_ns", {{3, -4}}},
                      Wrong{"unit_ns", {{3, 4}, {3, 4}}}, Wrong{"copy_ns", {{1.5, 2}}},
                      Wrong{"head_ns", {1, 2}}, Wrong{"state_digest", 7}, Wrong{"threads", nullptr},
                      Wrong{"threads", {{{"cpu_ns", "x"}}}}, Wrong{"voluntary_switches", -1},
                      Wrong{"started_ns", nullptr}),
    [](const auto& given) { return std::string(given.param.key) + "_" + std::to_string(given.index); });

TEST(BlockCheck, APassMayNotPointBeyondTheDigests) {
  json block = good_block();
  block["passes"][0]["digest"] = 1;
  EXPECT_FALSE(check_block(block, "pp8", kAsked, 2));
}

TEST(BlockCheck, AnythingButAnObjectIsRefused) {
  EXPECT_FALSE(check_block(json::array(), "pp8", kAsked, 2));
  EXPECT_FALSE(check_block(nullptr, "pp8", kAsked, 2));
}

}  // namespace
}  // namespace opledger::session
