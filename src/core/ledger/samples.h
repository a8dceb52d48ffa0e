// One side of one workload, its blocks in order and what every later step needs of them: baselines, the price
// of a clock, units with their scopes. Internal to the analysis: no other folder includes this.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/ledger/contamination.h"
#include "core/ledger/ledger.h"
#include "core/ledger/speed.h"
#include "core/record/record.h"
#include "core/stats/interval.h"

namespace opledger::core::detail {

/// One figure per launch group, in ms per pass (decode: per token).
using GroupFigures = std::map<int, double>;

/// A round of a launch group: (group, round).
using RoundKey = std::pair<int, int>;
using RoundFigures = std::map<RoundKey, double>;

/// A turn of a round: arms whose passes were as good as simultaneous.
struct TurnKey {
  RoundKey round;
  int64_t turn = 0;
  bool operator<(const TurnKey& other) const {
    return std::tie(round, turn) < std::tie(other.round, other.turn);
  }
};
using TurnFigures = std::map<TurnKey, double>;

/// Picks units of the unit order.
using UnitMask = std::vector<bool>;

struct SideSamples {
  Side side = Side::kA;
  const WorkloadGraph* graph = nullptr;  ///< nullptr: the session ended before it was known
  double ms_per_ns = 1e-6;               ///< decode: divided by the tokens of a pass
  std::vector<const Block*> blocks;      ///< timed ones, by sequence, of the groups that both sides have
  std::set<int> unpaired_groups;         ///< left out, because the other side has no baseline there
  std::set<int> lost_groups;             ///< left out, because a side's baselines there are all contaminated
  std::vector<const Block*> verify_blocks;
  std::vector<const Block*> dropped_blocks;  ///< timed ones of contaminated stints: only their results count
  Contamination contamination;               ///< of the workload: both sides'
  std::vector<int> unit_calls;               ///< executions per pass, in unit order
  std::vector<int> unit_scope;               ///< in unit order; empty without a graph
  Speeds speeds;
  std::map<int, double> price_ns;  ///< by group, at its speed; the price of one clock interval
  std::vector<Arm> arms;           ///< replay arms, each id once

  GroupFigures wall_ms, graph_ms, wall_minus_graph_ms;
  int baseline_passes = 0;
  int dropped_passes = 0;  ///< of baselines

  /// Timed blocks, those too whose times do not count.
  [[nodiscard]] std::vector<const Block*> all_timed() const;
  [[nodiscard]] std::vector<const Block*> blocks_of(const std::string& arm) const;
  [[nodiscard]] int64_t calls_in(const UnitMask& mask) const;
  [[nodiscard]] UnitMask mask_of_scope(int scope) const;
  [[nodiscard]] UnitMask mask_of_all() const;
  /// The group's price; where its price blocks are missing, the median of the other groups'. Empty without
  /// any.
  [[nodiscard]] std::optional<double> price_of(int group) const;
};

/// Of the launch groups in which both sides have baselines, so that every column tells of the same launches;
/// of all where one side has none. Contaminated stints are left out if `leaves_out` and unless there are too
/// many. Bad input: a block whose arrays do not have one entry per unit of the graph.
Result<SideSamples> collect_samples(const Record& record, Side side, const WorkloadFacts& workload,
                                    std::vector<int> unit_scope, bool leaves_out = true);

/// The price of a clock, by group: once the groups' totals are settled.
void add_prices(SideSamples& samples);

/// What a pass of a block is worth, in ns; empty when it cannot be said (that pass is then left out).
using PassFigure = std::function<std::optional<double>(const Block&, size_t pass)>;

/// Median over a group's passes of `figure` (ns), over all blocks of `arm`, times `scale`.
GroupFigures medians_by_group(const SideSamples& samples, const std::string& arm, double scale,
                              const PassFigure& figure);
RoundFigures medians_by_round(const SideSamples& samples, const std::string& arm, double scale,
                              const PassFigure& figure);
TurnFigures medians_by_turn(const SideSamples& samples, const std::string& arm, double scale,
                            const PassFigure& figure);

/// Sum of the masked entries of one row of unit times, in ns.
double masked_sum(const std::vector<int64_t>& unit_ns, const UnitMask& mask);

/// The same of every step of a pass; of the whole pass where it does not tell its steps.
std::vector<double> masked_sums(const Block& block, const std::vector<std::vector<int64_t>>& table,
                                size_t pass, const UnitMask& mask);

/// A time within this pass, given step by step, told at the speed of its group's baselines: the machine
/// drifts by tenths within seconds, and what disturbs one step must not lengthen a row. The plain sum without
/// baselines.
double at_speed_of_group(const SideSamples& samples, const Block& block, size_t pass,
                         const std::vector<double>& steps_ns);

/// The pass's graph time at the speed of its group, disturbances left out, in ns. Empty without baselines.
std::optional<double> length_ns(const SideSamples& samples, const Block& block, size_t pass);

/// The same less the group's baseline.
std::optional<double> excess_ns(const SideSamples& samples, const Block& block, size_t pass);

/// Sum of the masked units of one stamped pass, in ns, at the speed of its group; one price taken off per
/// executed unit.
std::optional<double> net_units_ns(const SideSamples& samples, const Block& block, size_t pass,
                                   const UnitMask& mask);

/// Mean over groups, with its interval.
Measured measured_of(const GroupFigures& figures);
/// a - b, paired by group, over the groups that both have.
GroupFigures paired_difference(const GroupFigures& a, const GroupFigures& b);
template <typename Key>
std::vector<double> values_of(const std::map<Key, double>& figures) {
  std::vector<double> values;
  values.reserve(figures.size());
  for (const auto& entry : figures) values.push_back(entry.second);
  return values;
}

/// Milliseconds with about four digits: 1224, 309.1, 12.35, 0.412. For notes and check texts.
std::string brief_ms(double ms);
/// "12.35 [11.90, 12.70]".
std::string figure_text(double centre, const std::optional<Interval>& interval);

}  // namespace opledger::core::detail
