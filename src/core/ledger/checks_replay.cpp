// clocks agree, linear, no negative: do the two clocks, which share no error, tell the same time?
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>

#include "core/ledger/checks.h"
#include "core/ledger/rows.h"
#include "core/stats/fit.h"
#include "core/stats/summary.h"

namespace opledger::core::detail {

namespace {

// Rows above this share of the pass are judged by their increment, smaller ones by their copies: an increment
// carries the noise of the whole pass.
constexpr double kLargeRowRatio = 0.05;
constexpr double kLinearInterceptRatio = 0.02;

struct Judgement {
  bool held = false;
  std::string text;
};

Judgement judge_difference(const char* what, const std::optional<Estimate>& difference, double tolerance_ms) {
  if (!difference) return {false, fmt::format("{} was not measured", what)};
  const std::string figure = figure_text(difference->centre, difference->interval);
  if (!difference->interval)
    return {false, fmt::format("{} {} ms, unresolved: fewer than three rounds", what, figure)};
  const bool held = difference->interval->lies_inside(tolerance_ms);
  const bool is_apart = std::abs(difference->centre) > tolerance_ms;
  return {held, fmt::format("{} {} ms, allowed {}{}", what, figure, brief_ms(tolerance_ms),
                            held || is_apart ? "" : ": unresolved, it needs more rounds")};
}

// A copy may differ from its original where its weights came from elsewhere. That is settled when siblings
// (closer) and shadows (farther) lie on both sides of the original, or when bytes said `warm` beforehand.
Judgement judge_copies(const ScopeSide& side, const ReplayFigures& best, double tolerance_ms) {
  const auto& excess = best.copy_excess;
  const bool is_apart = excess && (excess->interval ? excess->interval->low > tolerance_ms ||
                                                          excess->interval->high < -tolerance_ms
                                                    : std::abs(excess->centre) > tolerance_ms);
  if (!is_apart) return {true, ""};
  const std::string apart =
      fmt::format("copy {} against original {} ms", brief_ms(*best.copy_ms), brief_ms(*best.original_ms));
  if (best.is_warm && excess->centre < 0) return {true, apart + " (warm by bytes)"};
  double low = *best.copy_ms;
  double high = *best.copy_ms;
  std::set<std::string> weights;
  for (const ReplayFigures& replay : side.replays) {
    if (!replay.copy_ms) continue;
    weights.insert(replay.weights);
    low = std::min(low, *replay.copy_ms);
    high = std::max(high, *replay.copy_ms);
  }
  if (weights.count("sibling") == 0 || weights.count("shadow") == 0)
    return {false, apart + ", and no bracket of sibling and shadow weights"};
  const bool is_bracketed =
      low - tolerance_ms <= *best.original_ms && *best.original_ms <= high + tolerance_ms;
  return {is_bracketed, fmt::format("{}, sibling and shadow copies {} to {}{}", apart, brief_ms(low),
                                    brief_ms(high), is_bracketed ? " bracket it" : " do not bracket it")};
}

Judgement judge_row(const ScopeSide& side, double row_ms, double pass_ms) {
  const ReplayFigures& best = side.replays.front();
  const double tolerance = clock_tolerance_ms(row_ms, pass_ms);
  if (!best.copy_ms) {
    if (best.increment_ms.empty() || best.increment_by_round.empty())
      return {false, "its replay has no baselines"};
    return judge_difference("increment - stamp", best.increment_excess, tolerance);
  }
  const bool is_large = row_ms > kLargeRowRatio * pass_ms;
  const bool has_plain = !best.increment_ms.empty();
  Judgement copies = judge_copies(side, best, tolerance);
  Judgement clocks = is_large || has_plain ? judge_difference("c - (o - o') + neighbours - increment",
                                                              best.disagreement, tolerance)
                                           : Judgement{};
  if (is_large) {
    clocks.held = clocks.held && copies.held;
    if (!copies.text.empty()) clocks.text += "; " + copies.text;
    return clocks;
  }
  Judgement small = judge_difference("c - o", best.copy_excess, tolerance);
  if (!small.held && copies.held && !copies.text.empty()) return {true, small.text + "; " + copies.text};
  if (!copies.text.empty()) small.text += "; " + copies.text;
  return small;
}

Check clocks_agree(const PairSamples& pair, const ScopeFigures& figures, Side which) {
  const ScopeSide& side = side_of(figures, which);
  const SideSamples& samples = pair.side(which);
  Check check{"clocks agree", side_name(which), CheckStatus::kNotRun, std::nullopt, std::nullopt, ""};
  const std::optional<double> row = measured_of(side.stamp_ms).ms;
  const std::optional<double> pass = measured_of(samples.graph_ms).ms;
  if (side.replays.empty() || !row || !pass) {
    check.text = figures.scope->name + (side.replays.empty() ? ": not replayed" : ": not stamped");
    return check;
  }
  const ReplayFigures& best = side.replays.front();
  const Judgement judgement = judge_row(side, *row, *pass);
  check.limit = clock_tolerance_ms(*row, *pass);
  const bool is_large = *row > kLargeRowRatio * *pass;
  const std::optional<Estimate>& judged =
      !best.copy_ms ? best.increment_excess : (is_large ? best.disagreement : best.copy_excess);
  if (judged) check.value = judged->centre;
  check.status = judgement.held ? CheckStatus::kHeld : CheckStatus::kFailed;
  check.text = fmt::format("{}: {}", figures.scope->name, judgement.text);
  return check;
}

// The total increment of a replay over copies, from the plain arms of the same weights.
std::optional<LineFit> line_over_copies(const ScopeSide& side, const std::string& weights) {
  std::vector<double> copies;
  std::vector<double> total_ms;
  std::set<int> seen;
  for (const ReplayFigures& replay : side.replays) {
    if (replay.weights != weights) continue;
    for (const auto& [round, increment] : replay.increment_by_round) {
      copies.push_back(replay.plain_copies);
      total_ms.push_back(increment * replay.plain_copies);
      seen.insert(replay.plain_copies);
    }
  }
  const bool has_all = seen.count(1) > 0 && seen.count(2) > 0 && seen.count(4) > 0;
  return has_all ? fit_line_robust(copies, total_ms) : std::nullopt;
}

Check linear(const PairSamples& pair, Side which) {
  Check check{"linear",     side_name(which),      CheckStatus::kNotRun,
              std::nullopt, kLinearInterceptRatio, "no row was replayed with 1, 2 and 4 copies"};
  const std::optional<double> pass = measured_of(pair.side(which).graph_ms).ms;
  if (!pass) return check;
  for (const ScopeFigures& figures : pair.scopes) {
    for (const char* weights : {"sibling", "shadow", "same"}) {
      const std::optional<LineFit> fit = line_over_copies(side_of(figures, which), weights);
      if (!fit) continue;
      const double share = std::abs(fit->intercept) / *pass;
      if (check.value && share <= *check.value) continue;
      check.value = share;
      check.status = share <= kLinearInterceptRatio ? CheckStatus::kHeld : CheckStatus::kFailed;
      check.text = fmt::format("{}: {} + {} ms per copy ({} weights), the constant is {:.1f}% of the pass",
                               figures.scope->name, brief_ms(fit->intercept), brief_ms(fit->slope), weights,
                               100 * share);
    }
  }
  return check;
}

Check no_negative(const PairSamples& pair, Side which) {
  Check check{"no negative",
              side_name(which),
              CheckStatus::kNotRun,
              std::nullopt,
              0.0,
              "no row was replayed in three rounds or more"};
  int judged = 0;
  std::string negative;
  for (const ScopeFigures& figures : pair.scopes) {
    for (const ReplayFigures& replay : side_of(figures, which).replays) {
      const std::optional<Estimate> increment = trimmed_mean_interval(values_of(replay.increment_by_round));
      if (!increment || !increment->interval) continue;
      ++judged;
      if (!check.value || increment->interval->high < *check.value) check.value = increment->interval->high;
      if (increment->interval->high < 0)
        negative +=
            fmt::format("{}{} ({} x{}): {} ms", negative.empty() ? "" : ", ", figures.scope->name,
                        replay.weights, replay.copies, figure_text(increment->centre, increment->interval));
    }
  }
  if (judged == 0) return check;
  check.status = negative.empty() ? CheckStatus::kHeld : CheckStatus::kFailed;
  check.text = negative.empty()
                   ? fmt::format("none of {} replays made the pass faster", judged)
                   : "copies made the pass faster, so they broke fusion or in-place writes: " + negative;
  return check;
}

}  // namespace

void add_clocks_agree(const PairSamples& pair, const WorkloadLedger& ledger, std::vector<Check>& checks) {
  // In the rows' order, so that the checks can be read beside them.
  for (const Side side : kBothSides) {
    size_t added = 0;
    for (const Row& row : ledger.rows) {
      for (const ScopeFigures& figures : pair.scopes) {
        if (figures.scope->name != row.scope || side_of(figures, side).nodes == 0) continue;
        checks.push_back(clocks_agree(pair, figures, side));
        ++added;
      }
    }
    if (added == 0)
      checks.push_back({"clocks agree", side_name(side), CheckStatus::kNotRun, std::nullopt, std::nullopt,
                        "no rows were measured"});
  }
}

void add_replay_checks(const PairSamples& pair, std::vector<Check>& checks) {
  for (const Side side : kBothSides) checks.push_back(linear(pair, side));
  for (const Side side : kBothSides) checks.push_back(no_negative(pair, side));
}

}  // namespace opledger::core::detail
