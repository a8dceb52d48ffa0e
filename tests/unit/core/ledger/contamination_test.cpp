// Threads that waited, or that got less of their cores, in chosen stints of planted sessions.
#include "core/ledger/contamination.h"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>

#include "synthetic_record.h"

namespace opledger::core {
namespace {

using testing::PlantedSession;
using testing::two_engines;

/// In the synthetic record a stint is a round of one side. 10 launch groups of 2 rounds: 20 stints a side.
PlantedSession ten_launches() {
  PlantedSession session = two_engines();
  session.groups = 10;
  session.a.group_ppm.assign(10, 0);
  session.b.group_ppm.assign(10, 0);
  return session;
}

bool is_timed_in(const Block& block, Side side, int group, int round) {
  return !block.is_verify && block.place.side == side && block.place.group == group &&
         block.place.round == round;
}

/// The record with both threads of some blocks changed: elapsed 100 ms each.
Record changed(const PlantedSession& session, const std::function<void(Block&)>& change) {
  Record record = session.record();
  for (Block& block : record.blocks) {
    for (ThreadUse& thread : block.threads) thread.cpu_ns = 98'000'000;
    change(block);
  }
  return record;
}

void set_threads(Block& block, int64_t cpu_ns, int64_t delay_ns) {
  for (ThreadUse& thread : block.threads) thread = {cpu_ns, delay_ns};
}

detail::Contamination found_in(const Record& record) {
  return detail::contamination_of(record, record.workloads.front().id);
}

TEST(Contamination, OfAQuietRecordIsNone) {
  const detail::Contamination found = found_in(changed(ten_launches(), [](Block&) {}));
  EXPECT_TRUE(found.stints.empty());
  EXPECT_EQ(found.watched, 40);
  EXPECT_FALSE(found.is_too_much);
}

TEST(Contamination, IsAStintWhoseThreadsWaitedOverATwentiethOfTheirTime) {
  for (const auto& [delay_ns, stints] : {std::pair{4'900'000, 0}, {5'100'000, 1}}) {
    const detail::Contamination found = found_in(changed(ten_launches(), [&, delay = delay_ns](Block& block) {
      if (is_timed_in(block, Side::kB, 3, 2)) set_threads(block, 98'000'000, delay);
    }));
    EXPECT_EQ(found.stints.size(), static_cast<size_t>(stints)) << delay_ns;
    EXPECT_EQ(found.waited, stints);
    EXPECT_EQ(found.stolen, 0);
    EXPECT_DOUBLE_EQ(found.side_ratio[0], 0);
    EXPECT_DOUBLE_EQ(found.side_ratio[1], stints / 20.0);
  }
}

TEST(Contamination, IsAStintWhoseThreadsGotATenthLessOfTheirCoresThanUsual) {
  // Usual: 98 of 100 ms. A tenth less is 88.2.
  for (const auto& [cpu_ns, stints] : {std::pair{88'300'000, 0}, {88'100'000, 1}}) {
    const detail::Contamination found = found_in(changed(ten_launches(), [&, cpu = cpu_ns](Block& block) {
      if (is_timed_in(block, Side::kA, 1, 1)) set_threads(block, cpu, 0);
    }));
    EXPECT_EQ(found.stolen, stints) << cpu_ns;
    EXPECT_EQ(found.waited, 0);
  }
}

TEST(Contamination, IsOneRateOverAllArmsOfAStint) {
  // One baseline alone waits; a turn has three blocks (baseline, stamp, empty) of 100 ms.
  PlantedSession session = ten_launches();
  session.is_interleaved = true;
  const detail::Contamination found = found_in(changed(session, [](Block& block) {
    if (is_timed_in(block, Side::kA, 2, 2) && block.arm == "baseline")
      set_threads(block, 98'000'000, 14'000'000);
  }));
  EXPECT_TRUE(found.stints.empty());  // 14 of 300 ms
  const detail::Contamination more = found_in(changed(session, [](Block& block) {
    if (is_timed_in(block, Side::kA, 2, 2) && block.arm == "baseline")
      set_threads(block, 98'000'000, 16'000'000);
  }));
  EXPECT_EQ(more.waited, 1);
}

TEST(Contamination, AThreadThatHardlyRanTakesNothingFromTheOthers) {
  const detail::Contamination found = found_in(changed(ten_launches(), [](Block& block) {
    if (is_timed_in(block, Side::kA, 4, 1)) block.threads.push_back({1000, 0});
  }));
  EXPECT_TRUE(found.stints.empty());
}

TEST(Contamination, UntimedBlocksDoNotCount) {
  const detail::Contamination found = found_in(changed(ten_launches(), [](Block& block) {
    if (block.is_verify) set_threads(block, 1, 90'000'000);
  }));
  EXPECT_TRUE(found.stints.empty());
}

TEST(Contamination, ThreadsThatDoNotTellAreKept) {
  const detail::Contamination found =
      found_in(changed(ten_launches(), [](Block& block) { block.threads.clear(); }));
  EXPECT_EQ(found.watched, 0);
  EXPECT_FALSE(found.is_too_much);
  const detail::Contamination waiting = found_in(changed(ten_launches(), [](Block& block) {
    for (ThreadUse& thread : block.threads) thread.run_delay_ns.reset();
  }));
  EXPECT_EQ(waiting.watched, 40);
  EXPECT_TRUE(waiting.stints.empty());
}

TEST(Contamination, IsTooMuchWhereHalfOfASideOrTheSidesAreTooFarApart) {
  const auto with_rounds = [](int of_a, int of_b) {
    return found_in(changed(ten_launches(), [&](Block& block) {
      const int stint = 2 * (block.place.group - 1) + block.place.round;  // 1 to 20
      if (!block.is_verify && stint <= (block.place.side == Side::kA ? of_a : of_b))
        set_threads(block, 98'000'000, 50'000'000);
    }));
  };
  EXPECT_FALSE(with_rounds(10, 10).is_too_much);
  EXPECT_TRUE(with_rounds(11, 10).is_too_much);
  EXPECT_FALSE(with_rounds(5, 2).is_too_much);
  EXPECT_TRUE(with_rounds(5, 1).is_too_much);
  EXPECT_TRUE(with_rounds(1, 5).is_too_much);
  EXPECT_FALSE(with_rounds(11, 10).drops(*with_rounds(11, 10).stints.begin()));
  EXPECT_TRUE(with_rounds(10, 10).drops(*with_rounds(10, 10).stints.begin()));
}

WorkloadLedger ledger_of(const Record& record) {
  const auto ledger = analyse_scoped(record, testing::planted_scoping(2), {});
  EXPECT_TRUE(ledger.is_ok()) << (ledger ? "" : ledger.error().message);
  return ledger ? ledger->workloads.front() : WorkloadLedger{};
}

void twice(std::vector<int64_t>& times_ns) {
  for (int64_t& ns : times_ns) ns *= 2;
}

/// Rounds 2 of launches 1 to `launches` of side a last twice as long, and their threads say why.
Record disturbed(int launches) {
  return changed(ten_launches(), [launches](Block& block) {
    if (block.is_verify || block.place.side != Side::kA || block.place.round != 2) return;
    if (block.place.group > launches) return;
    set_threads(block, 49'000'000, 49'000'000);
    for (Pass& pass : block.passes) {
      pass.wall_ns += pass.graph_ns;
      pass.graph_ns *= 2;
    }
    if (block.unit_ns) std::for_each(block.unit_ns->begin(), block.unit_ns->end(), twice);
    for (auto* part : {&block.head_ns, &block.tail_ns}) {
      if (*part) twice(**part);
    }
  });
}

TEST(Contamination, IsLeftOutOfEveryFigureAndCounted) {
  const WorkloadLedger quiet = ledger_of(disturbed(0));
  const WorkloadLedger ledger = ledger_of(disturbed(2));
  EXPECT_DOUBLE_EQ(*ledger.gap.ms, *quiet.gap.ms);
  EXPECT_DOUBLE_EQ(*ledger.rows.front().gap.ms, *quiet.rows.front().gap.ms);
  EXPECT_EQ(quiet.a.dropped, 0);
  // Three baselines a round (before and after stamp and empty), of three passes each, in two stints.
  EXPECT_EQ(ledger.a.dropped, 18);
  EXPECT_EQ(ledger.b.dropped, 0);
  const Check check = testing::check_named(ledger, "quiet", "", "2 of 40 stints contaminated");
  EXPECT_EQ(check.status, CheckStatus::kHeld);
  EXPECT_NEAR(*check.value, 0.05, 1e-12);
}

TEST(Contamination, OfOneEngineMoreThanOfTheOtherLeavesNothingToTell) {
  const WorkloadLedger ledger = ledger_of(disturbed(5));
  EXPECT_EQ(testing::check_named(ledger, "quiet", "", "5 of 40 stints").status, CheckStatus::kFailed);
  EXPECT_EQ(ledger.verdict, "cannot tell");
  EXPECT_EQ(ledger.a.dropped, 0);
  for (const Row& row : ledger.rows) EXPECT_FALSE(row.is_real) << row.scope;
}

TEST(Contamination, OfBothEnginesInDifferentStintsIsCountedTogether) {
  // 11 of the 20 stints of a side are more than half; 10 of either are half of all.
  const auto with_rounds = [](int of_both) {
    return found_in(changed(ten_launches(), [&](Block& block) {
      const int stint = 2 * (block.place.group - 1) + block.place.round;
      if (!block.is_verify && stint <= of_both) set_threads(block, 98'000'000, 50'000'000);
    }));
  };
  EXPECT_FALSE(with_rounds(10).is_too_much);
  EXPECT_EQ(with_rounds(10).stints.size(), 20U);
  EXPECT_TRUE(with_rounds(11).is_too_much);
}

TEST(Contamination, OfTwoStintsMoreIsNoChoice) {
  PlantedSession session = two_engines();  // three launches: two of six stints are a third
  const auto with_stints = [&](int groups) {
    return found_in(changed(session, [groups](Block& block) {
      if (!block.is_verify && block.place.side == Side::kA && block.place.round == 2 &&
          block.place.group <= groups)
        set_threads(block, 98'000'000, 50'000'000);
    }));
  };
  EXPECT_FALSE(with_stints(2).is_too_much);
  EXPECT_TRUE(with_stints(2).drops(*with_stints(2).stints.begin()));
  EXPECT_TRUE(with_stints(3).is_too_much);
}

/// Launch group 1 of side a, whole.
Record with_bad_group(const PlantedSession& session) {
  return changed(session, [](Block& block) {
    if (!block.is_verify && block.place.side == Side::kA && block.place.group == 1)
      set_threads(block, 98'000'000, 50'000'000);
  });
}

TEST(Contamination, OfAWholeLaunchGroupIsCountedAndItsResultsStillCount) {
  Record record = with_bad_group(ten_launches());
  const WorkloadLedger ledger = ledger_of(record);
  EXPECT_EQ(ledger.a.launch_groups, 9);
  EXPECT_EQ(ledger.b.launch_groups, 9);
  EXPECT_EQ(ledger.a.dropped, ledger.b.dropped);
  EXPECT_GT(ledger.b.dropped, 0);
  EXPECT_EQ(ledger.not_solid.front(),
            "launch group 1 left out, of which nothing but contaminated baselines is left");
  for (Block& block : record.blocks) {
    if (is_timed_in(block, Side::kA, 1, 1) && block.arm == "stamp") block.digests = {{"ffff"}};
  }
  EXPECT_EQ(testing::check_named(ledger_of(record), "identical", "a").status, CheckStatus::kFailed);
}

TEST(Contamination, StaysWhereFewerThanThreeLaunchGroupsWouldBeLeft) {
  const WorkloadLedger ledger = ledger_of(with_bad_group(two_engines()));
  EXPECT_EQ(ledger.a.launch_groups, 3);
  EXPECT_EQ(ledger.a.dropped, 0);
  const Check check = testing::check_named(ledger, "quiet", "", "2 of 12 stints contaminated");
  EXPECT_EQ(check.status, CheckStatus::kFailed);
  EXPECT_EQ(ledger.verdict, "slower");
}

TEST(Contamination, OfEveryPriceLeavesTheStampsTheirPrice) {
  PlantedSession session = ten_launches();
  session.is_interleaved = true;
  session.rounds = 4;
  const Record record = changed(session, [](Block& block) {
    if (!block.is_verify && block.place.round == 1) set_threads(block, 98'000'000, 50'000'000);
  });
  const WorkloadLedger ledger = ledger_of(record);
  EXPECT_GT(ledger.a.dropped, 0);
  EXPECT_EQ(ledger.rows.front().evidence, "stamp");
  EXPECT_NEAR(*ledger.rows.front().a.ms, 1200, 1e-3);
}

TEST(Contamination, LeavesASequenceOfLooksItsSamples) {
  const Record record = with_bad_group(ten_launches());
  const auto logs = launch_log_ratios(record, record.workloads.front());
  ASSERT_TRUE(logs);
  EXPECT_EQ(logs->size(), 10U);
}

TEST(Contamination, HidesNoOtherResult) {
  Record record = disturbed(2);
  for (Block& block : record.blocks) {
    if (is_timed_in(block, Side::kA, 1, 2) && block.arm == "stamp") block.digests = {{"ffff"}};
  }
  EXPECT_EQ(testing::check_named(ledger_of(record), "identical", "a").status, CheckStatus::kFailed);
}

}  // namespace
}  // namespace opledger::core
