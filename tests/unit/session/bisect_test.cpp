// Guilty units are planted in the test's own replay.
#include "session/bisect.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>
#include <vector>

namespace opledger::session {
namespace {

using Units = std::vector<core::UnitName>;

Units units(int count) {
  Units all;
  for (int u = 0; u < count; ++u) all.push_back({0, u});
  return all;
}

/// A replay that breaks when it holds one of `alone`, or all of `together`.
struct Planted {
  std::set<int> alone;
  std::set<int> together;
  int tests = 0;

  ReplayTest test() {
    return [this](const Units& subset) -> Result<bool> {
      ++tests;
      size_t company = 0;
      for (const core::UnitName& unit : subset) {
        if (alone.count(unit.unit) > 0) return false;
        company += together.count(unit.unit);
      }
      return together.empty() || company < together.size();
    };
  }
};

TEST(Bisect, FindsEveryUnitThatBreaksByItself) {
  Planted planted{{3, 77, 78}, {}, 0};
  const Result<Breaking> found = find_breaking_units(units(100), planted.test(), 64);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->alone, (Units{{0, 3}, {0, 77}, {0, 78}}));
  EXPECT_TRUE(found->together.empty());
  EXPECT_LE(planted.tests, 45);  // three guilty, two tests at each of 7 levels, and one of the rest
}

TEST(Bisect, UnitsThatBreakOnlyInCompanyAreExcludedTogether) {
  Planted planted{{}, {2, 6}, 0};
  const Result<Breaking> found = find_breaking_units(units(8), planted.test(), 64);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->alone.empty());
  EXPECT_EQ(found->together.size(), 8U);
}

TEST(Bisect, CompanyAcrossAGuiltyUnitIsStillFound) {
  // 1 breaks alone; once it is out, 0 and 7 still break together.
  Planted planted{{1}, {0, 7}, 0};
  const Result<Breaking> found = find_breaking_units(units(8), planted.test(), 64);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->alone, (Units{{0, 1}}));
  const auto holds = [&](int unit) {
    return std::find(found->together.begin(), found->together.end(), core::UnitName{0, unit}) !=
           found->together.end();
  };
  EXPECT_TRUE(holds(0) && holds(7));
}

TEST(Bisect, StopsAfterItsTestsAndExcludesWhatIsStillUnderSuspicion) {
  Planted planted{{5}, {}, 0};
  const Result<Breaking> found = find_breaking_units(units(64), planted.test(), 4);
  ASSERT_TRUE(found);
  EXPECT_LE(planted.tests, 6);
  EXPECT_TRUE(found->alone.empty());
  EXPECT_EQ(found->together.size(), 16U);  // two halvings of 64
}

TEST(Bisect, PassesAFailureOfTheReplayOn) {
  const ReplayTest dies = [](const Units&) -> Result<bool> { return Error::failure("engine died"); };
  EXPECT_FALSE(find_breaking_units(units(4), dies, 64));
}

}  // namespace
}  // namespace opledger::session
