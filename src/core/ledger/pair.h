// Both sides of one workload with the scopes of their units: what rows and checks are made from. Internal to
// the analysis.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "core/ledger/replay.h"
#include "core/ledger/samples.h"
#include "core/scopes/scopes.h"

namespace opledger::core::detail {

/// One scope on one side.
struct ScopeSide {
  UnitMask units;
  int nodes = 0;                       ///< working nodes executed per pass
  GroupFigures stamp_ms;               ///< price taken off
  std::vector<ReplayFigures> replays;  ///< best first
};

struct ScopeFigures {
  const Scope* scope = nullptr;
  ScopeSide a, b;
};

/// Units that could not be measured, with what they are of the pass.
struct Excluded {
  int units = 0;
  double nodes_ratio = 0, bytes_ratio = 0, flop_ratio = 0;
  std::vector<std::string> texts;  ///< one per unit: its nodes and the reason
};

struct PairSamples {
  const Record* record = nullptr;
  const WorkloadFacts* workload = nullptr;
  std::string name_a, name_b;
  SideSamples a, b;
  std::vector<ScopeFigures> scopes;  ///< those with units on either side
  Excluded excluded_a, excluded_b;

  [[nodiscard]] const SideSamples& side(Side which) const { return which == Side::kA ? a : b; }
  [[nodiscard]] const std::string& name(Side which) const { return which == Side::kA ? name_a : name_b; }
  [[nodiscard]] const Excluded& excluded(Side which) const {
    return which == Side::kA ? excluded_a : excluded_b;
  }
};

inline constexpr std::array<Side, 2> kBothSides{Side::kA, Side::kB};

inline const ScopeSide& side_of(const ScopeFigures& figures, Side side) {
  return side == Side::kA ? figures.a : figures.b;
}

/// Bad input: see collect_samples.
Result<PairSamples> collect_pair(const Record& record, const WorkloadFacts& workload, const Scoping& scoping,
                                 std::vector<int> unit_scope_a, std::vector<int> unit_scope_b);

/// "llama" and "ik", or the whole specs where the names are the same.
std::array<std::string, 2> engine_labels(const Record& record);

}  // namespace opledger::core::detail
