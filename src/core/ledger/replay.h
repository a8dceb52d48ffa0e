// What the replay arms of one row say: the plain increment, the stamped replay's parts, and whether the two
// clocks agree. Internal to the analysis.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/ledger/samples.h"

namespace opledger::core::detail {

/// One (weights, copies) of one scope; the plain and the stamped arm that belong together. All in ms per pass
/// (decode: per token) and per copy. Empty: that arm, or its baselines, are not in the record.
struct ReplayFigures {
  std::string weights;
  int copies = 1;
  UnitMask covered;  ///< units really copied
  int refused_units = 0;
  int fallen_back_units = 0;  ///< asked for other weights than they got
  /// More than half of the bytes that the copies read come from within the cache knee, while the pass as a
  /// whole reads more than fits: decided from bytes alone. False when a distance or the knee is unknown.
  bool is_warm = false;

  GroupFigures increment_ms;
  TurnFigures increment_by_turn;
  std::optional<double> copy_ms;             ///< c
  std::optional<double> original_beside_ms;  ///< o'
  std::optional<double> original_ms;         ///< o, of the covered units
  std::optional<double> neighbours_ms;
  std::optional<double> predicted_ms;  ///< c - (o - o') / k + neighbours / k
  // Over all steps of all turns; over turns where passes do not tell their steps.
  std::optional<Estimate> disagreement;      ///< predicted - increment
  std::optional<Estimate> copy_excess;       ///< c - o
  std::optional<Estimate> increment_excess;  ///< increment - o, over turns
};

/// Every replay of the scope in the record, best first: those with a stamped arm, of these those with a plain
/// one, siblings before shadows before the same weights (one copy of them before shadows), more copies before
/// fewer.
std::vector<ReplayFigures> replays_of(const SideSamples& samples, const std::string& scope_name,
                                      const UnitMask& scope, std::optional<int64_t> knee_bytes);

/// Bytes of distinct weights that one pass reads: how far apart two uses of one weight lie.
int64_t pass_weight_bytes(const WorkloadGraph& graph);

}  // namespace opledger::core::detail
