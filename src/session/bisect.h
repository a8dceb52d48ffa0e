// Finds the units that cannot be replayed without changing the result, by halving. Pure: what "replay these"
// means is the caller's.
#pragma once

#include <functional>
#include <vector>

#include "core/base/result.h"
#include "core/record/record.h"

namespace opledger::session {

/// Replays exactly these units and says whether the result stayed the same.
using ReplayTest = std::function<Result<bool>(const std::vector<core::UnitName>&)>;

struct Breaking {
  std::vector<core::UnitName> alone;     ///< each breaks the result by itself
  std::vector<core::UnitName> together;  ///< break it only in company, or could not be told apart in time
};

/// `units` is known to break the result. At most `max_tests` tests; what is then still under suspicion goes
/// to `together`. When it returns, `units` without both lists has passed a test (or is empty).
Result<Breaking> find_breaking_units(const std::vector<core::UnitName>& units, const ReplayTest& keeps_result,
                                     int max_tests);

}  // namespace opledger::session
