// Totals come from the baselines, rows from the stamps (on a CPU their sum closes on the pass; replay misses
// whatever a cache still held), gaps from pairs of launch groups.
#include "core/ledger/rows.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <numeric>

#include "core/stats/summary.h"

namespace opledger::core::detail {

namespace {

// Nothing costs less than nothing: such a row's price or clock is wrong, and so is its gap.
bool is_below_zero(const Measured& cost) {
  return cost.ms && (cost.ci_ms ? (*cost.ci_ms)[1] < 0 : *cost.ms < 0);
}

bool is_real_gap(const Measured& gap, std::optional<double> floor_ms) {
  return gap.ms && excludes_zero(gap) && floor_ms && std::abs(*gap.ms) > *floor_ms;
}

GroupFigures only_common(const GroupFigures& figures, const GroupFigures& other) {
  GroupFigures common;
  for (const auto& [group, value] : figures) {
    if (other.count(group) > 0) common[group] = value;
  }
  return common;
}

// The gap's interval from the paired log-ratios: a machine that slows both engines in one launch group
// cancels. (a - b) / (a + b) is tanh(log(a / b) / 2), which carries the ratio's interval over to
// milliseconds.
Measured total_gap(const GroupFigures& a, const GroupFigures& b, std::optional<Estimate>& ratio) {
  const std::vector<double> as = values_of(only_common(a, b));
  const std::vector<double> bs = values_of(only_common(b, a));
  ratio = paired_ratio_interval(as, bs);
  if (!ratio) return {};
  const double mean_a = *mean_of(as);
  const double mean_b = *mean_of(bs);
  Measured gap{mean_a - mean_b, std::nullopt};
  if (!ratio->interval) return gap;
  const auto in_ms = [&](double r) { return (mean_a + mean_b) * (r - 1) / (r + 1); };
  gap.ci_ms = {in_ms(ratio->interval->low), in_ms(ratio->interval->high)};
  return gap;
}

// Rows of both sides that cost something are compared like totals; the others by their differences.
Measured row_gap(const GroupFigures& a, const GroupFigures& b) {
  std::optional<Estimate> ratio;
  const Measured gap = total_gap(a, b, ratio);
  return gap.ms ? gap : measured_of(paired_difference(a, b));
}

// Drift between groups widens the first, few groups widen the second: each is an upper bound by itself.
std::optional<double> noise_floor_ms(const GroupFigures& a, const GroupFigures& b) {
  const std::optional<double> apart = launch_noise_floor(values_of(a), values_of(b));
  const std::optional<double> paired =
      paired_noise_floor(values_of(only_common(a, b)), values_of(only_common(b, a)));
  if (apart && paired) return std::min(*apart, *paired);
  return apart ? apart : paired;
}

std::string verdict_of(const WorkloadLedger& ledger) {
  if (ledger.is_contaminated) return "cannot tell";
  if (is_real_gap(ledger.gap, ledger.noise_floor_ms)) return *ledger.gap.ms > 0 ? "slower" : "faster";
  const auto& ci = ledger.ratio_ci;
  if (ci && (*ci)[0] > 1 - kSameRatio && (*ci)[1] < 1 + kSameRatio) return "same";
  return "cannot tell";
}

WorkloadSide workload_side(const PairSamples& pair, Side which) {
  const SideSamples& samples = pair.side(which);
  WorkloadSide side;
  side.engine = pair.name(which);
  side.wall = measured_of(samples.wall_ms);
  side.graph = measured_of(samples.graph_ms);
  const bool is_decode = pair.workload->kind == WorkloadKind::kDecode;
  const double tokens = is_decode ? 1.0 : static_cast<double>(pair.workload->tokens_per_pass);
  if (side.wall.ms && *side.wall.ms > 0) side.tokens_per_s = tokens * 1000.0 / *side.wall.ms;
  side.launch_groups = static_cast<int>(samples.wall_ms.size());
  side.passes = samples.baseline_passes;
  side.dropped = samples.dropped_passes;
  if (samples.graph != nullptr) side.excluded_bytes_ratio = pair.excluded(which).bytes_ratio;
  return side;
}

GroupFigures unexplained(const PairSamples& pair, Side which) {
  const SideSamples& samples = pair.side(which);
  GroupFigures rest = samples.graph_ms;
  for (const ScopeFigures& scope : pair.scopes)
    rest = paired_difference(rest, side_of(scope, which).stamp_ms);
  if (pair.scopes.empty()) rest.clear();
  return rest;
}

// A difference of whole passes, so small that a figure without its interval is noise: of passes of 3 s one
// launch read 81 ms, the other engine's -226.
Measured barrier_figure(const GroupFigures& figures) {
  const Measured figure = measured_of(figures);
  return figure.ci_ms ? figure : Measured{};
}

GroupFigures barrier_cost(const SideSamples& samples) {
  return medians_by_group(samples, "empty", samples.ms_per_ns,
                          [&](const Block& block, size_t pass) { return excess_ns(samples, block, pass); });
}

std::optional<ReplaySide> replay_side(const ScopeSide& side) {
  if (side.replays.empty()) return std::nullopt;
  const ReplayFigures& best = side.replays.front();
  return ReplaySide{measured_of(best.increment_ms), best.copies, best.weights, best.copy_ms,
                    best.original_beside_ms};
}

std::string bracket_text(const ScopeSide& side) {
  std::string text;
  for (const ReplayFigures& replay : side.replays) {
    if (replay.copy_ms)
      text +=
          fmt::format("{}{}{} {}", text.empty() ? "" : ", ", replay.weights,
                      replay.copies > 1 ? fmt::format(" x{}", replay.copies) : "", brief_ms(*replay.copy_ms));
  }
  return text;
}

// The stamped replay's parts; those too small to matter are left out.
std::string why_they_differ(const ScopeSide& side, const ReplayFigures& best, double tolerance_ms) {
  if (!best.copy_ms || !best.original_beside_ms || !best.neighbours_ms)
    return "no stamped replay was made that would say why";
  std::string why =
      fmt::format("copies cost {} (by weights: {})", brief_ms(*best.copy_ms), bracket_text(side));
  const double saved = *best.original_ms - *best.original_beside_ms;
  if (std::abs(saved) > tolerance_ms / 4)
    why += saved > 0 ? fmt::format(", beside them the originals, whose weights they brought closer, {} less",
                                   brief_ms(saved))
                     : fmt::format(", beside them the originals {} more", brief_ms(-saved));
  if (std::abs(*best.neighbours_ms) > tolerance_ms / 4)
    why += fmt::format(", the other units {} {}", brief_ms(std::abs(*best.neighbours_ms)),
                       *best.neighbours_ms > 0 ? "more" : "less");
  if (best.disagreement && std::abs(best.disagreement->centre) > tolerance_ms)
    why += fmt::format(", which does not explain it: these parts say {}", brief_ms(*best.predicted_ms));
  return why;
}

// Where the clocks disagree, the facts that say why.
void add_disagreement(const std::string& engine, const ScopeSide& side, const Measured& stamp, double pass_ms,
                      Row& row) {
  if (side.replays.empty()) return;
  const ReplayFigures& best = side.replays.front();
  const Measured plain = measured_of(best.increment_ms);
  if (best.fallen_back_units > 0)
    row.notes.push_back(fmt::format("{}: {} units had no {} weights to copy and read others", engine,
                                    best.fallen_back_units, best.weights));
  if (best.refused_units > 0)
    row.notes.push_back(fmt::format("{}: {} units could not be replayed", engine, best.refused_units));
  if (best.is_warm)
    row.notes.push_back(
        fmt::format("{}: warm: the copies' weights were still in a cache, so replay reads low "
                    "(decided from bytes)",
                    engine));
  if (!stamp.ms || !plain.ms || !best.original_ms) return;
  const double difference = *plain.ms - *best.original_ms;
  const double tolerance_ms = clock_tolerance_ms(*best.original_ms, pass_ms);
  if (std::abs(difference) <= tolerance_ms) return;
  row.notes.push_back(fmt::format(
      "{}: replay says {} ms, stamps {}: {}; the row takes the stamps, whose sum closes on "
      "the pass",
      engine, brief_ms(*plain.ms), brief_ms(*best.original_ms), why_they_differ(side, best, tolerance_ms)));
}

GroupFigures chosen_figures(const ScopeSide& side, bool takes_stamps) {
  if (takes_stamps || side.replays.empty()) return side.stamp_ms;
  return side.replays.front().increment_ms;
}

Row row_of(const ScopeFigures& figures, const WorkloadLedger& ledger) {
  Row row;
  row.scope = figures.scope->name;
  row.categories = figures.scope->categories;
  row.notes = figures.scope->notes;
  row.nodes_a = figures.a.nodes;
  row.nodes_b = figures.b.nodes;
  row.stamp_a = measured_of(figures.a.stamp_ms);
  row.stamp_b = measured_of(figures.b.stamp_ms);
  row.replay_a = replay_side(figures.a);
  row.replay_b = replay_side(figures.b);
  const bool takes_stamps = (row.stamp_a.ms && row.stamp_b.ms) || !row.replay_a || !row.replay_b;
  row.evidence = takes_stamps ? "stamp" : "replay";
  const GroupFigures a = chosen_figures(figures.a, takes_stamps);
  const GroupFigures b = chosen_figures(figures.b, takes_stamps);
  row.a = measured_of(a);
  row.b = measured_of(b);
  row.gap = row_gap(a, b);
  row.noise_floor_ms = noise_floor_ms(a, b);
  row.is_real = !ledger.is_contaminated && is_real_gap(row.gap, row.noise_floor_ms) &&
                !is_below_zero(row.a) && !is_below_zero(row.b);
  if (row.gap.ms && ledger.gap.ms && excludes_zero(ledger.gap))
    row.share_of_gap = *row.gap.ms / *ledger.gap.ms;
  for (const Side which : kBothSides) {
    const WorkloadSide& side = which == Side::kA ? ledger.a : ledger.b;
    if (side.graph.ms)
      add_disagreement(side.engine, side_of(figures, which), which == Side::kA ? row.stamp_a : row.stamp_b,
                       *side.graph.ms, row);
  }
  return row;
}

std::string routing_text(const WorkloadGraph& graph) {
  double distinct = 0;
  int counts = 0;
  int64_t experts = 0;
  int64_t used = 0;
  for (const Routing& routing : graph.routing) {
    experts = std::max(experts, routing.experts);
    used = std::max(used, routing.used);
    for (const int64_t n : routing.distinct) {
      distinct += static_cast<double>(n);
      ++counts;
    }
  }
  if (counts == 0) return {};
  return fmt::format("{:.1f} distinct experts of {} per layer and graph call ({} used per token)",
                     distinct / counts, experts, used);
}

void add_routing_notes(const PairSamples& pair, Row& row) {
  const bool has_experts =
      std::find(row.categories.begin(), row.categories.end(), "moe_experts") != row.categories.end();
  if (!has_experts) return;
  for (const Side which : kBothSides) {
    const SideSamples& samples = pair.side(which);
    if (samples.graph == nullptr) continue;
    if (const std::string text = routing_text(*samples.graph); !text.empty())
      row.notes.push_back(fmt::format("{}: {}", pair.name(which), text));
  }
}

void add_lines(const PairSamples& pair, WorkloadLedger& ledger) {
  ledger.wall_minus_graph_a = measured_of(pair.a.wall_minus_graph_ms);
  ledger.wall_minus_graph_b = measured_of(pair.b.wall_minus_graph_ms);
  ledger.wall_minus_graph_gap =
      measured_of(paired_difference(pair.a.wall_minus_graph_ms, pair.b.wall_minus_graph_ms));
  const GroupFigures rest_a = unexplained(pair, Side::kA);
  const GroupFigures rest_b = unexplained(pair, Side::kB);
  ledger.unexplained_a = measured_of(rest_a);
  ledger.unexplained_b = measured_of(rest_b);
  ledger.unexplained_gap = measured_of(paired_difference(rest_a, rest_b));
  const GroupFigures barriers_a = barrier_cost(pair.a);
  const GroupFigures barriers_b = barrier_cost(pair.b);
  ledger.barrier_a = barrier_figure(barriers_a);
  ledger.barrier_b = barrier_figure(barriers_b);
  ledger.barrier_gap = barrier_figure(paired_difference(barriers_a, barriers_b));
}

}  // namespace

double clock_tolerance_ms(double row_ms, double pass_ms) {
  return std::max(0.05 * std::abs(row_ms), 0.005 * pass_ms);
}

WorkloadLedger ledger_of(const PairSamples& pair) {
  WorkloadLedger ledger;
  ledger.name = pair.workload->id;
  ledger.tokens = static_cast<int>(pair.workload->tokens_per_pass);
  ledger.is_per_token = pair.workload->kind == WorkloadKind::kDecode;
  ledger.a = workload_side(pair, Side::kA);
  ledger.b = workload_side(pair, Side::kB);
  ledger.is_contaminated = pair.a.contamination.is_too_much;
  std::optional<Estimate> ratio;
  std::optional<Estimate> graph_ratio;
  ledger.gap = total_gap(pair.a.wall_ms, pair.b.wall_ms, ratio);
  ledger.graph_gap = total_gap(pair.a.graph_ms, pair.b.graph_ms, graph_ratio);
  if (ratio) ledger.ratio = ratio->centre;
  if (ratio && ratio->interval) ledger.ratio_ci = {ratio->interval->low, ratio->interval->high};
  ledger.noise_floor_ms = noise_floor_ms(pair.a.wall_ms, pair.b.wall_ms);
  ledger.verdict = verdict_of(ledger);
  for (const ScopeFigures& figures : pair.scopes) {
    ledger.rows.push_back(row_of(figures, ledger));
    add_routing_notes(pair, ledger.rows.back());
  }
  static constexpr double kLowest = std::numeric_limits<double>::lowest();
  std::stable_sort(ledger.rows.begin(), ledger.rows.end(), [](const Row& x, const Row& y) {
    return x.gap.ms.value_or(kLowest) > y.gap.ms.value_or(kLowest);
  });
  add_lines(pair, ledger);
  return ledger;
}

}  // namespace opledger::core::detail
