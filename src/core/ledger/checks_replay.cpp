// clocks agree, linear, no negative: do the two clocks, which share no error, tell the same time?
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>
#include <vector>

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
  bool is_shown = false;  ///< the whole interval lies beyond what is allowed
};

bool lies_beyond(const Interval& interval, double tolerance_ms) {
  return interval.low > tolerance_ms || interval.high < -tolerance_ms;
}

Judgement judge_difference(const char* what, const std::optional<Estimate>& difference, double tolerance_ms) {
  if (!difference) return {false, fmt::format("{} was not measured", what)};
  const std::string figure = figure_text(difference->centre, difference->interval);
  if (!difference->interval)
    return {false, fmt::format("{} {} ms, unresolved: fewer than three turns", what, figure)};
  const bool held = difference->interval->lies_inside(tolerance_ms);
  const bool is_apart = std::abs(difference->centre) > tolerance_ms;
  return {held,
          fmt::format("{} {} ms, allowed {}{}", what, figure, brief_ms(tolerance_ms),
                      held || is_apart ? "" : ": unresolved, it needs more rounds"),
          lies_beyond(*difference->interval, tolerance_ms)};
}

struct Bracket {
  bool is_whole = false;  // both nearer weights (siblings', or the same) and shadows were copied
  double low_ms = 0, high_ms = 0;
};

// The replay whose copies are compared with their originals: of several copies of a unit, the later ones may
// find closer what the first one read.
const ReplayFigures& of_one_copy(const ScopeSide& side) {
  const auto found = std::find_if(side.replays.begin(), side.replays.end(), [](const ReplayFigures& replay) {
    return replay.copies == 1 && replay.copy_ms;
  });
  return found == side.replays.end() ? side.replays.front() : *found;
}

Bracket bracket_of(const ScopeSide& side, const ReplayFigures& judged) {
  Bracket bracket{false, *judged.copy_ms, *judged.copy_ms};
  std::set<std::string> weights;
  for (const ReplayFigures& replay : side.replays) {
    if (!replay.copy_ms || replay.copies != judged.copies) continue;
    weights.insert(replay.weights);
    bracket.low_ms = std::min(bracket.low_ms, *replay.copy_ms);
    bracket.high_ms = std::max(bracket.high_ms, *replay.copy_ms);
  }
  bracket.is_whole = weights.count("sibling") + weights.count("same") > 0 && weights.count("shadow") > 0;
  return bracket;
}

// A copy must cost what its original does, or differ because its weights came from elsewhere. That is shown
// when near weights and shadows (farther) lie on both sides of the original, or when bytes said `warm`
// beforehand. A difference that is not resolved is not explained either.
Judgement judge_copies(const ScopeSide& side, double tolerance_ms) {
  const ReplayFigures& judged = of_one_copy(side);
  Judgement plain = judge_difference("c - o", judged.copy_excess, tolerance_ms);
  if (plain.held || !judged.copy_excess || !judged.copy_excess->interval) return plain;
  const Interval& excess = *judged.copy_excess->interval;
  if (!plain.is_shown) return plain;
  if (judged.is_warm && excess.high < 0) return {true, plain.text + " (warm by bytes)"};
  const Bracket bracket = bracket_of(side, judged);
  if (!bracket.is_whole) return {false, plain.text + ", and no bracket of near and shadow weights", true};
  const double original_ms = *judged.original_ms;
  const bool held =
      bracket.low_ms - tolerance_ms <= original_ms && original_ms <= bracket.high_ms + tolerance_ms;
  return {held,
          fmt::format("{}; copies of near and shadow weights {} to {} {} the original, {}", plain.text,
                      brief_ms(bracket.low_ms), brief_ms(bracket.high_ms),
                      held ? "bracket" : "do not bracket", brief_ms(original_ms)),
          !held};
}

Judgement judge_row(const ScopeSide& side, double row_ms, double pass_ms) {
  const ReplayFigures& best = side.replays.front();
  const double tolerance = clock_tolerance_ms(row_ms, pass_ms);
  if (!best.copy_ms) {
    if (best.increment_ms.empty() || best.increment_by_turn.empty())
      return {false, "its replay has no baselines"};
    return judge_difference("increment - stamp", best.increment_excess, tolerance);
  }
  Judgement copies = judge_copies(side, tolerance);
  if (row_ms <= kLargeRowRatio * pass_ms) return copies;
  const Judgement clocks =
      judge_difference("c - (o - o') + neighbours - increment", best.disagreement, tolerance);
  return {clocks.held && copies.held, clocks.text + "; " + copies.text,
          (!clocks.held && clocks.is_shown) || (!copies.held && copies.is_shown)};
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
      !best.copy_ms ? best.increment_excess : (is_large ? best.disagreement : of_one_copy(side).copy_excess);
  if (judged) check.value = judged->centre;
  check.status = judgement.held ? CheckStatus::kHeld : CheckStatus::kFailed;
  check.text = fmt::format("{}: {}", figures.scope->name, judgement.text);
  check.is_shown = judgement.is_shown;
  return check;
}

// The total increment of a replay over copies, from the plain arms of the same weights.
std::optional<LineFit> line_over_copies(const ScopeSide& side, const std::string& weights) {
  std::vector<double> copies;
  std::vector<double> total_ms;
  std::set<int> seen;
  for (const ReplayFigures& replay : side.replays) {
    if (replay.weights != weights) continue;
    for (const auto& [turn, increment] : replay.increment_by_turn) {
      copies.push_back(replay.copies);
      total_ms.push_back(increment * replay.copies);
      seen.insert(replay.copies);
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

// Rows that cost less than nothing: their clocks' price was taken too high.
std::string negative_rows(const PairSamples& pair, Side which) {
  std::vector<std::string> rows;
  for (const ScopeFigures& figures : pair.scopes) {
    const Measured row = measured_of(side_of(figures, which).stamp_ms);
    if (row.ms && row.ci_ms && (*row.ci_ms)[1] < 0)
      rows.push_back(fmt::format("{} ({} ms)", figures.scope->name, brief_ms(*row.ms)));
  }
  return fmt::format("{}", fmt::join(rows, ", "));
}

Check no_negative(const PairSamples& pair, Side which) {
  Check check{"no negative",
              side_name(which),
              CheckStatus::kNotRun,
              std::nullopt,
              0.0,
              "no row was replayed in three turns or more"};
  int judged = 0;
  std::string negative;
  for (const ScopeFigures& figures : pair.scopes) {
    for (const ReplayFigures& replay : side_of(figures, which).replays) {
      const std::optional<Estimate> increment = trimmed_mean_interval(values_of(replay.increment_by_turn));
      if (!increment || !increment->interval) continue;
      ++judged;
      if (!check.value || increment->interval->high < *check.value) check.value = increment->interval->high;
      if (increment->interval->high < 0)
        negative +=
            fmt::format("{}{} ({} x{}): {} ms", negative.empty() ? "" : ", ", figures.scope->name,
                        replay.weights, replay.copies, figure_text(increment->centre, increment->interval));
    }
  }
  if (const std::string rows = negative_rows(pair, which); !rows.empty()) {
    check.status = CheckStatus::kFailed;
    check.text = "rows cost less than nothing, so the price of a clock is too high: " + rows;
    return check;
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
