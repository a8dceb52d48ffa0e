// Whole comparisons of two scripted engines, in which every time is planted: what the record must then hold.
#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/ledger/analyse.h"
#include "core/ledger/precision.h"
#include "session_fixture.h"

namespace opledger::fake {
namespace {

using nlohmann::json;

core::Record record_of(const Result<session::CompareOutcome>& outcome) {
  Result<core::Record> record = core::parse_record(outcome->record_text, "record");
  EXPECT_TRUE(record) << (record ? "" : record.error().message);
  return std::move(*record);
}

class Compare : public FakeSession {};

TEST_F(Compare, LeavesARecordWithEveryFactAndThreeGroups) {
  const auto outcome = compare(options());
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_FALSE(outcome->error) << outcome->error->message;
  EXPECT_EQ(outcome->end_reason, "complete");
  const core::Record record = record_of(outcome);
  EXPECT_TRUE(record.cache);
  EXPECT_EQ(record.engines.size(), 2U);
  EXPECT_EQ(record.models.size(), 2U);
  ASSERT_EQ(record.workloads.size(), 2U);
  EXPECT_EQ(record.workloads[0].id, "pp8");
  EXPECT_EQ(record.workloads[1].id, "tg4@8");
  EXPECT_EQ(record.graphs.size(), 4U);
  EXPECT_GE(record.groups.size(), 3U);
  ASSERT_EQ(record.logits.size(), 2U);
  EXPECT_EQ(record.logits[0].top1_agreement_ratio, 1.0);
  EXPECT_EQ(record.end_reason, "complete");
  EXPECT_TRUE(record.doubts.empty());
}

TEST_F(Compare, EveryTurnHoldsOneBaselineAndTheArmsOfOneRow) {
  const core::Record record = record_of(compare(options()));
  std::map<int64_t, std::vector<std::string>> turns;
  std::map<int64_t, std::set<std::string>> scopes;
  for (const core::Block& block : record.blocks) {
    if (block.is_verify) continue;
    turns[block.place.turn].push_back(block.arm);
    const size_t scope = block.arm.find(':');
    if (scope != std::string::npos)
      scopes[block.place.turn].insert(
          block.arm.substr(scope + 1, block.arm.find(':', scope + 1) - scope - 1));
  }
  EXPECT_GE(turns.size(), 12U);
  for (const auto& [turn, arms] : turns) {
    EXPECT_EQ(std::count(arms.begin(), arms.end(), "baseline"), 1) << turn;
    EXPECT_EQ(std::count(arms.begin(), arms.end(), "stamp"), 1) << turn;
    EXPECT_LE(scopes[turn].size(), 1U) << turn;
  }
}

TEST_F(Compare, ThePriceIsMeasuredInTheFirstRoundOfEveryGroup) {
  const core::Record record = record_of(compare(options()));
  std::set<std::string> groups;
  std::multiset<std::string> priced;
  for (const core::Block& block : record.blocks) {
    if (block.is_verify) continue;
    const std::string group =
        block.place.workload + core::side_name(block.place.side) + std::to_string(block.place.group);
    groups.insert(group);
    if (block.arm != "price") continue;
    priced.insert(group);
    EXPECT_EQ(block.place.round, 1);
    // Steps enough that one of them may be disturbed.
    EXPECT_GE(block.rows_of(block.passes.size() - 1).second, 3U);
  }
  EXPECT_EQ(priced, std::multiset<std::string>(groups.begin(), groups.end()));
}

TEST_F(Compare, EveryArmIsVerifiedInSomeGroup) {
  const core::Record record = record_of(compare(options()));
  std::set<std::string> run;
  std::set<std::string> verified;
  for (const core::Block& block : record.blocks) {
    (block.is_verify ? verified : run)
        .insert(core::side_name(block.place.side) + block.place.workload + block.arm);
    EXPECT_EQ(block.state_digest.has_value(), block.is_verify);
  }
  EXPECT_EQ(run, verified);
}

TEST_F(Compare, EnginesTakeTurnsInTheOrderABBA) {
  // A pass of 120 ms or more: an arm or two are a stint, so that a round has several.
  const json slow{{"default", 400000}};
  script("a", {{"ns_per_token", slow}});
  script("b", {{"ns_per_token", slow}});
  const core::Record record = record_of(compare(options()));
  std::string turns;
  int last_round = 0;
  for (const core::Block& block : record.blocks) {
    if (block.place.group != 2 || block.place.workload != "pp8" || block.is_verify) continue;
    if (block.place.round > 1) break;
    const char side = *core::side_name(block.place.side);
    if (turns.empty() || turns.back() != side) turns += side;
    last_round = block.place.round;
  }
  EXPECT_EQ(last_round, 1);
  // b starts the second group; b a, a b, b a: neighbouring stints of one side show as one letter.
  EXPECT_EQ(turns.substr(0, 4), "baba");
}

TEST_F(Compare, TurnsOfOneRowAreSharedByBothEngines) {
  const core::Record record = record_of(compare(options()));
  std::map<int64_t, std::map<std::string, size_t>> passes;  // by stint and side
  for (const core::Block& block : record.blocks) {
    if (block.is_verify || block.arm != "baseline") continue;
    passes[block.place.stint][core::side_name(block.place.side)] = block.passes.size();
  }
  EXPECT_GE(passes.size(), 6U);
  for (const auto& [stint, of_side] : passes) {
    ASSERT_EQ(of_side.size(), 2U) << stint;
    EXPECT_EQ(of_side.at("a"), of_side.at("b")) << stint;
  }
}

TEST_F(Compare, LargeScopesAreReplayedOnBothSidesAndSmallOnesShareAnArm) {
  const json rates{{"default", 100}, {"ffn_down", 20000}, {"FLASH_ATTN_EXT", 5000}};
  script("a", {{"ns_per_token", rates}});
  script("b", {{"ns_per_token", rates}});
  const core::Record record = record_of(compare(options()));
  std::map<std::string, std::set<std::string>> scopes;
  for (const core::ArmsFacts& facts : record.arms) {
    for (const core::Arm& arm : facts.arms) {
      if (!arm.scope.empty())
        scopes[std::string(core::side_name(facts.side)) + facts.workload].insert(arm.scope);
    }
  }
  ASSERT_EQ(scopes.size(), 4U);
  for (const auto& [name, found] : scopes) {
    EXPECT_EQ(found.count("dense_proj"), 1U) << name;
    EXPECT_EQ(found.count("attention"), 1U) << name;
    EXPECT_EQ(found.count("norm"), 0U) << name;
    EXPECT_EQ(found.count(core::kSmallRows), 1U) << name;
  }
}

TEST_F(Compare, CopiesUnlikeTheirOriginalsTwiceGetABracket) {
  script("a", {{"copy_ratio", 0.8}});
  script("b", {{"copy_ratio", 1.0}});
  const core::Record record = record_of(compare(options()));
  std::set<std::pair<core::Side, int>> bracketed;
  for (const core::ArmsFacts& facts : record.arms) {
    for (const core::Arm& arm : facts.arms) {
      if (arm.id.rfind("stamped_replay:dense_proj:shadow", 0) == 0)
        bracketed.insert({facts.side, facts.group});
    }
  }
  EXPECT_EQ(bracketed.count({core::Side::kA, 2}), 0U);
  EXPECT_EQ(bracketed.count({core::Side::kA, 3}), 1U);
  EXPECT_EQ(bracketed.count({core::Side::kB, 3}), 0U);
}

TEST_F(Compare, CopiesAreChosenForTheirClocksToBeTold) {
  // a: 2 layers; per token 7 dense units of 1000 a layer, attention 500 a layer, lm_head 1000, the rest 1:
  // attention and lm_head are 6.2% each, so the clocks of either may differ by 0.5% of the pass.
  const json rest{{"default", 1}, {"MUL_MAT", 1000}, {"FLASH_ATTN_EXT", 500}, {"output", 1000}};
  script("a", {{"ns_per_token", rest}, {"price_ns", 0}});
  script("b", {{"ns_per_token", rest}, {"price_ns", 0}});
  const core::Record record = record_of(compare(options()));
  std::map<std::string, std::set<int>> copies;
  for (const core::ArmsFacts& facts : record.arms) {
    for (const core::Arm& arm : facts.arms) {
      if (arm.copies) copies[arm.scope].insert(*arm.copies);
    }
  }
  EXPECT_EQ(copies["attention"], (std::set<int>{1, 8}));
  EXPECT_EQ(copies["lm_head"], (std::set<int>{1, 8}));
  EXPECT_EQ(copies["dense_proj"], std::set<int>{1});
}

// Two hundred seconds are gone as soon as the session has begun.
class JumpingClock final : public platform::Clock {
 public:
  [[nodiscard]] int64_t now_ns() const override {
    return steady_.now_ns() + (has_begun_.exchange(true) ? 200'000'000'000 : 0);
  }

 private:
  platform::SteadyClock steady_;
  mutable std::atomic<bool> has_begun_ = false;
};

// Two seconds go by between any two looks at it, until there were 300 of them.
class HastyClock final : public platform::Clock {
 public:
  [[nodiscard]] int64_t now_ns() const override {
    return steady_.now_ns() + std::min<int64_t>(++looks_, 300) * 2'000'000'000;
  }

 private:
  platform::SteadyClock steady_;
  mutable std::atomic<int64_t> looks_ = 0;
};

TEST_F(Compare, EveryTimedArmHasItsStateDigestedAlsoWherePassesTurnOutShorterThanTheyLooked) {
  session::CompareOptions patient = options();
  patient.budget_s = 10'000;
  patient.engine_limit_ns = 1'000'000'000'000;  // whoever waits for an engine looks at the clock too
  const HastyClock hasty;
  const platform::Interrupt interrupt;
  session::Progress progress(false, hasty);
  const core::Record record = record_of(session::run_compare(patient, hasty, interrupt, progress));
  std::map<std::string, std::set<std::string>> timed;
  std::map<std::string, std::set<std::string>> digested;
  for (const core::Block& block : record.blocks) {
    const std::string place = core::side_name(block.place.side) + (" " + block.place.workload);
    if (block.is_verify && block.state_digest) digested[place].insert(block.arm);
    if (!block.is_verify) timed[place].insert(block.arm);
  }
  EXPECT_EQ(timed.size(), 4U);
  EXPECT_EQ(timed, digested);
}

TEST_F(Compare, EndsAtThePlannedLookThatKnowsEnough) {
  session::CompareOptions precise = options();
  precise.precision_ratio = 0.5;
  precise.max_rounds = 1;
  precise.max_groups = 16;
  precise.is_enough = [](const std::string& text) {
    const Result<core::Record> record = core::parse_record(text, "record");
    const auto rules = rules_of("llama.cpp");
    const auto ledger = core::analyse(*record, {{"llama.cpp", *rules}});
    return core::is_precise_enough(*ledger, 0.5);
  };
  const core::Record record = record_of(compare(precise));
  EXPECT_EQ(record.groups.size(), 8U);
  EXPECT_EQ(record.end_reason, "complete");
  EXPECT_EQ(record.header.precision_ratio, 0.5);
}

TEST_F(Compare, ShowsALedgerOnceThreeGroupsTellSomethingAndTimeHasGone) {
  session::CompareOptions late = options();
  late.budget_s = 1000;
  std::vector<std::string> shown;
  late.show_so_far = [&](const std::string& text) { shown.push_back(text); };
  const JumpingClock clock;
  const platform::Interrupt interrupt;
  session::Progress progress(false, clock);
  const auto outcome = session::run_compare(late, clock, interrupt, progress);
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(shown.size(), 1U);
  const auto record = core::parse_record(shown[0], "so far");
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->groups.size(), 3U);
  EXPECT_FALSE(record->end_reason);
}

TEST_F(Compare, TotalsAreMeasuredByBaselinesAloneUntilThatIsEnough) {
  script("a", {{"ns_per_token", {{"default", 4000}}}});
  script("b", {{"ns_per_token", {{"default", 2000}}}});
  session::CompareOptions totals = options();
  totals.totals_only = true;
  totals.workloads = {{}, {4}, {8}};
  totals.max_groups = 61;
  const auto ratios_of = [](const std::string& text) {
    const auto record = core::parse_record(text, "so far");
    const auto logs = core::launch_log_ratios(*record, record->workloads.front());
    return logs ? *logs : std::vector<double>{};
  };
  totals.is_enough = [&](const std::string& text) { return ratios_of(text).size() >= 5; };
  const auto outcome = compare(totals);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->end_reason, "complete");
  const std::vector<double> logs = ratios_of(outcome->record_text);
  ASSERT_EQ(logs.size(), 5U);
  for (const double log : logs) EXPECT_GT(log, 0.3);  // a takes twice as long, and the fake its own time
  const auto record = core::parse_record(outcome->record_text, "so far");
  for (const core::Block& block : record->blocks) EXPECT_EQ(block.arm, "baseline");
}

TEST_F(Compare, UnitsThatChangeTheResultAreFoundAndExcluded) {
  script("b", {{"breaking_units", {5}}});
  const auto outcome = compare(options());
  ASSERT_FALSE(outcome->error) << outcome->error->message;
  const core::Record record = record_of(outcome);
  std::set<std::string> excluded;
  for (const core::Event& event : record.events) {
    if (event.kind != "excluded") continue;
    EXPECT_EQ(event.side, core::Side::kB);
    EXPECT_EQ(event.unit, (core::UnitName{0, 5}));
    excluded.insert(event.workload);
  }
  EXPECT_EQ(excluded, (std::set<std::string>{"pp8", "tg4@8"}));
  for (const core::ArmsFacts& facts : record.arms) {
    if (facts.side != core::Side::kB || facts.group < 2) continue;
    for (const core::Arm& arm : facts.arms) {
      for (const core::ArmUnit& unit : arm.units) EXPECT_FALSE(unit.unit == (core::UnitName{0, 5})) << arm.id;
    }
  }
}

/// Side b's last verification of each replay that was timed, by workload and arm.
std::map<std::string, core::Block> last_replay_checks(const core::Record& record) {
  std::map<std::string, core::Block> last;
  std::set<std::string> timed;
  for (const core::Block& block : record.blocks) {
    const bool is_replay = block.arm.find("replay") != std::string::npos;
    if (block.place.side != core::Side::kB || !is_replay) continue;
    const std::string name = block.place.workload + " " + block.arm;
    if (block.is_verify) last[name] = block;
    if (!block.is_verify) timed.insert(name);
  }
  std::erase_if(last, [&](const auto& entry) { return timed.count(entry.first) == 0; });
  EXPECT_EQ(last.size(), timed.size());
  return last;
}

std::vector<std::string> baseline_rows(const core::Record& record, const std::string& workload) {
  for (const core::Block& block : record.blocks) {
    if (block.place.workload == workload && block.arm == "baseline") return block.digests.front();
  }
  return {};
}

TEST_F(Compare, AReplayThatLostUnitsIsVerifiedAgain) {
  script("b", {{"breaking_units", {5}}, {"damaging_units", {7}}});
  const core::Record record = record_of(compare(options()));
  const auto checks = last_replay_checks(record);
  EXPECT_FALSE(checks.empty());
  for (const auto& [name, block] : checks) {
    EXPECT_EQ(block.digests.front(), baseline_rows(record, block.place.workload)) << name;
    // "1": what the fake engine's lasting memory is without damage.
    EXPECT_EQ(block.state_digest->back(), '1') << name;
  }
}

TEST_F(Compare, AReplayThatStillChangesTheResultIsLeftOut) {
  script("b", {{"crowded_units", {5}}});
  const auto outcome = compare(options());
  ASSERT_FALSE(outcome->error) << outcome->error->message;
  const core::Record record = record_of(outcome);
  for (const auto& [name, block] : last_replay_checks(record))
    EXPECT_EQ(block.digests.front(), baseline_rows(record, block.place.workload)) << name;
  const bool is_said = std::any_of(record.events.begin(), record.events.end(), [](const core::Event& event) {
    return event.kind == "note" && event.text.find("it is left out") != std::string::npos;
  });
  EXPECT_TRUE(is_said);
}

TEST_F(Compare, AnEngineThatDiesWhileProbingIsMeasuredWithoutProbing) {
  script("a", {{"faults", {{{"method", "graph"}, {"act", "exit_on_probe"}}}}});
  const auto outcome = compare(options());
  ASSERT_FALSE(outcome->error) << outcome->error->message;
  const core::Record record = record_of(outcome);
  const bool is_said = std::any_of(record.events.begin(), record.events.end(),
                                   [](const core::Event& event) { return event.kind == "engine_died"; });
  EXPECT_TRUE(is_said);
  EXPECT_FALSE(record.graph(core::Side::kA, "pp8")->graph.probe_ran);
  EXPECT_TRUE(record.graph(core::Side::kB, "pp8")->graph.probe_ran);
}

TEST_F(Compare, AnswersThatDifferAreMeasured) {
  script("b", {{"logit_shift", 5.0}});
  const core::Record record = record_of(compare(options()));
  ASSERT_EQ(record.logits.size(), 2U);
  EXPECT_GT(*record.logits[0].kl_nats_mean, 0.1);
}

TEST_F(Compare, APromptFileGivesTheTokens) {
  session::CompareOptions wanted = options();
  wanted.prompt_path = folder_ + "/prompt.txt";
  std::ofstream(*wanted.prompt_path) << "a text of more than twelve characters";
  const core::Record record = record_of(compare(wanted));
  EXPECT_EQ(record.workloads[0].token_source, *wanted.prompt_path);
}

TEST_F(Compare, AnEngineAgainstItselfIsFine) {
  session::CompareOptions wanted = options();
  wanted.spec_b = wanted.spec_a + "@fa=1";
  wanted.spec_a += "@fa=0";
  const auto outcome = compare(wanted);
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_FALSE(outcome->error) << outcome->error->message;
}

TEST_F(Compare, LeavesNoLogAndNoEngineBehind) {
  ASSERT_FALSE(compare(options())->error);
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/logs"));
}

}  // namespace
}  // namespace opledger::fake
