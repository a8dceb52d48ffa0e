// Arms as they are asked for: which units, how many copies, whose weights, and how long a pass of each will
// take. Pure decisions from graphs and stamped times; nothing is sent from here.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/record/record.h"

namespace opledger::session {

struct AskedUnit {
  core::UnitName unit;
  int copies = 1;
  std::string weights = "same";
  int stride = 1;
};

struct ArmPlan {
  std::string id;
  std::string kind;
  std::string scope;  ///< of replays
  std::optional<int> copies;
  std::vector<AskedUnit> units;
  double cost_ratio = 1.0;  ///< a pass of it over a baseline pass, as far as known
  bool is_twin = false;     ///< made only to bracket another arm's copies

  [[nodiscard]] bool is_replay() const { return copies.has_value(); }
  /// As `prepare` takes it; the record's form also says `scope` and `copies`.
  [[nodiscard]] nlohmann::json to_json(bool for_record) const;
};

/// baseline, price, stamp, empty: what every launch group measures. Only kinds that the engine lists.
std::vector<ArmPlan> base_arms(const std::vector<std::string>& engine_arms);

/// The units of a workload in unit order, by name.
std::vector<core::UnitName> units_in_order(const core::WorkloadGraph& graph);

/// Bytes of the weights that a unit's nodes read.
int64_t weight_bytes_of(const core::Graph& graph, const core::Unit& unit);

/// Copies that make the two clocks of a row comparable: so many that what they may differ by (5% of the row,
/// at least 0.5% of the pass) adds up to 4% of the pass, at most 8.
int copies_for(double share_ratio);

/// Layers between an original and its copy's weights: as far as `copies` copies leave room for, and a whole
/// number of `interval`s, after which a hybrid model's layers are of the same sort again.
int stride_for(int layers, int copies, int interval);

/// Settles what units that have weights but no sibling read. One copy reads the original's own, which it
/// finds as far away as the original does; several would find what the first one brought, and read shadow
/// copies where `may_shadow`. True when anything changed; the arm's id then names what most of its weight
/// bytes read.
bool settle_weights(const core::WorkloadGraph& graph, const nlohmann::json& prepared_arm, bool may_shadow,
                    ArmPlan& arm);

struct ScopeShare {
  std::string scope;
  std::vector<core::UnitName> units;
  double share_ratio = 0;  ///< of the baseline pass
};

/// What stamps say each scope costs: median over steps of the sum of its units' times less the price, over
/// the median step. `unit_scope` is in unit order. Scopes without a unit are left out; empty when nothing was
/// stamped.
std::vector<ScopeShare> scope_shares(const core::WorkloadGraph& graph, const std::vector<int>& unit_scope,
                                     const std::vector<std::string>& scope_names,
                                     const std::vector<nlohmann::json>& stamp_blocks,
                                     const std::vector<nlohmann::json>& price_blocks);

/// `replay` and `stamped_replay` of one scope, whose increments are compared; where they hold several copies,
/// a `stamped_replay` with one besides, which is compared with its original: of several, the later ones find
/// in a cache what the first one read (only weights have siblings).
std::vector<ArmPlan> replay_arms(const ScopeShare& scope, const std::vector<std::string>& engine_arms,
                                 int layers, int interval);

/// One stamped replay with one copy of every unit of all of `rows`. Empty without rows, or when the engine
/// has no such arm.
std::optional<ArmPlan> small_rows_arm(const std::vector<ScopeShare>& rows,
                                      const std::vector<std::string>& engine_arms, int layers, int interval);

/// Timed blocks of one launch group, by arm id.
using BlocksByArm = std::map<std::string, std::vector<nlohmann::json>>;

/// What the copies of a stamped replay cost more than their originals do in a stamped pass, over what the
/// originals cost: medians over steps. Empty when either was not measured.
std::optional<double> copy_excess_ratio(const core::WorkloadGraph& graph, const ArmPlan& arm,
                                        const BlocksByArm& blocks);

/// The same stamped replay with weights from the other end: shadow copies where it reads siblings' or the
/// originals' own; the originals' own where it reads shadows. Empty when none of its units reads weights.
std::optional<ArmPlan> bracket_twin(const core::WorkloadGraph& graph, const ArmPlan& arm);

}  // namespace opledger::session
