// Stints in which something else took the cores: found by what the engines' threads say of themselves, and
// left out whole. Internal to the analysis.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>

#include "core/record/record.h"

namespace opledger::core::detail {

/// Of their time, how much threads may wait for a core of ours.
inline constexpr double kWaitingRatio = 0.05;
/// Of the cores that they use in the engine's median stint, how much threads may lack: a host that gives a
/// core to somebody else is seen by no other clock of a guest. Over 17 records of a shared machine the spread
/// of baselines fell by a third with both rules (of the worst three from 0.23, 0.29 and 0.38 to 0.10, 0.12
/// and 0.14); quiet records lose nothing.
inline constexpr double kStolenRatio = 0.1;
/// Of all stints, or of one engine's: where more are contaminated, the usual ones are.
inline constexpr double kMostContaminated = 0.5;
/// Where one engine loses more of its stints than the other, and more than two, what is left may be a choice.
inline constexpr double kContaminationApart = 0.15;

struct Contamination {
  std::set<int64_t> stints;                ///< contaminated ones
  int watched = 0;                         ///< stints in which any threads tell of themselves
  int waited = 0, stolen = 0;              ///< contaminated ones by cause; those of both count as waited
  std::array<double, 2> side_ratio{0, 0};  ///< contaminated over all stints of a and b
  /// Nothing can be told: there are too many, or one engine has more. Nothing is left out.
  bool is_too_much = false;
  /// Fewer than three launch groups would be left, where there are three: nothing is left out.
  bool leaves_too_little = false;

  [[nodiscard]] bool drops(int64_t stint) const {
    return !is_too_much && !leaves_too_little && stints.count(stint) > 0;
  }
};

/// Launch groups in which both engines have baselines; of those alone that `contamination` leaves.
std::set<int> common_groups(const Record& record, const std::string& workload,
                            const Contamination& contamination = {});

/// The contaminated ones among the timed stints of a workload. What counts is a rate over all arms of the
/// stint, so that long arms are not left out more than short ones; and the whole stint is left out, so that
/// no arm is without its baseline, nor one engine without the other where they measured by turns.
Contamination contamination_of(const Record& record, const std::string& workload);

}  // namespace opledger::core::detail
