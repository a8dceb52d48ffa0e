// The closing sentence. It claims no more than the verdict and the rows called real.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>

#include "report/numbers.h"
#include "report/report.h"

namespace opledger::report {

namespace {

using core::Check;
using core::CheckStatus;
using core::Row;
using core::WorkloadLedger;

// Below this share of the gap one row is not the whole answer, and the second is named too.
constexpr double kOneRowIsEnough = 0.6;
constexpr double kWorthNaming = 0.1;
constexpr double kMostlyOutside = 0.5;
// Rows that a verdict names; its table has all of them.
constexpr size_t kMostMovedNamed = 3;

// Real rows that pull the way the total does and are worth naming, the largest first.
std::vector<const Row*> rows_that_carry(const WorkloadLedger& w) {
  std::vector<const Row*> rows;
  for (const Row& row : w.rows) {
    if (row.is_real && row.share_of_gap && *row.share_of_gap > kWorthNaming) rows.push_back(&row);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row* x, const Row* y) { return *x->share_of_gap > *y->share_of_gap; });
  return rows;
}

// Of the gap; 0 where it may be nothing.
double share_outside_graph(const WorkloadLedger& w) {
  const core::Measured& rest = w.wall_minus_graph_gap;
  return core::excludes_zero(rest) && rest.ms && w.gap.ms ? *rest.ms / *w.gap.ms : 0;
}

std::string where_it_lives(const WorkloadLedger& w) {
  const std::vector<const Row*> rows = rows_that_carry(w);
  const double outside = share_outside_graph(w);
  if (outside > kMostlyOutside)
    return fmt::format("{:.0f}% of the gap lies outside the graph", 100 * outside);
  if (rows.empty()) return "no row that holds a tenth of it exceeds the noise";
  std::string text = fmt::format("{} holds {:.0f}% of the gap", rows[0]->scope, 100 * *rows[0]->share_of_gap);
  if (*rows[0]->share_of_gap < kOneRowIsEnough && rows.size() > 1)
    text += fmt::format(", {} {:.0f}%", rows[1]->scope, 100 * *rows[1]->share_of_gap);
  return text;
}

std::string why_not_told(const WorkloadLedger& w) {
  if (!w.gap.ms) return "both engines were not measured";
  if (w.is_contaminated)
    return "something else took the cores too often (see quiet): stop it, or give --threads fewer of them, "
           "and "
           "measure again";
  if (!w.gap.ci_ms)
    return fmt::format("the gap of {} ms has no interval below three launch groups",
                       signed_ms_text(*w.gap.ms));
  const bool is_in_noise = w.noise_floor_ms && std::abs(*w.gap.ms) <= *w.noise_floor_ms;
  if (is_in_noise)
    return fmt::format("the gap of {} ms does not exceed the {} ms by which launches of one engine differ",
                       signed_ms_text(*w.gap.ms), ms_text(*w.noise_floor_ms));
  return fmt::format("the gap of {} ms may be zero: {}", signed_ms_text(*w.gap.ms),
                     interval_text(w.gap.ci_ms));
}

// What the reader must know beside the figure: checks that failed, and those without which nothing is proved.
std::string checks_not_held(const WorkloadLedger& w) {
  std::set<std::string> failed;
  std::set<std::string> not_run;
  for (const Check& check : w.checks) {
    if (check.status == CheckStatus::kFailed) failed.insert(check.name);
    if (check.status == CheckStatus::kNotRun && core::must_run(check)) not_run.insert(check.name);
  }
  for (const std::string& name : failed) not_run.erase(name);
  std::string text;
  if (!failed.empty()) text += fmt::format(" Failed checks: {}.", fmt::join(failed, ", "));
  if (!not_run.empty()) text += fmt::format(" Not run: {}.", fmt::join(not_run, ", "));
  return text;
}

std::string ratio_text(const WorkloadLedger& w) {
  return fmt::format("time ratio {:.3f} [{:.3f}, {:.3f}]", *w.ratio, (*w.ratio_ci)[0], (*w.ratio_ci)[1]);
}

// What is told by the ledger but not by the least effect, or by neither.
std::string why_no_verdict(const WorkloadLedger& w, double min_effect_ratio) {
  if (w.verdict == "cannot tell" || !w.ratio || !w.ratio_ci) return why_not_told(w);
  return fmt::format("the {} does not tell less from more than {}", ratio_text(w),
                     percent_text(min_effect_ratio));
}

std::string moved_text(const WorkloadLedger& w, const core::WorkloadRegression& regression) {
  std::vector<std::string> names;
  if (share_outside_graph(w) > kMostlyOutside)
    names.push_back(
        fmt::format("what lies outside the graph {} ms", signed_ms_text(*w.wall_minus_graph_gap.ms)));
  for (const core::MovedRow& moved : regression.moved) {
    if (names.size() < kMostMovedNamed)
      names.push_back(fmt::format("{} {} ms", moved.row.scope, signed_ms_text(*moved.row.gap.ms)));
  }
  return names.empty() ? "No row moved." : fmt::format("Moved: {}.", fmt::join(names, ", "));
}

std::string verdict_text(const WorkloadLedger& w, core::Verdict verdict, double min_effect_ratio) {
  if (verdict == core::Verdict::kCannotTell)
    return fmt::format("cannot tell at {}: {}", w.name, why_no_verdict(w, min_effect_ratio));
  if (verdict == core::Verdict::kSame)
    return fmt::format("same within {} at {}: {} takes as long as {} ({})", percent_text(min_effect_ratio),
                       w.name, w.a.engine, w.b.engine, ratio_text(w));
  return fmt::format("{} at {}: {} takes {} {} time than {} ({} ms{}, {})", core::regression_name(verdict),
                     w.name, w.a.engine, percent_text(std::abs(*w.ratio - 1)),
                     verdict == core::Verdict::kSlower ? "more" : "less", w.b.engine,
                     signed_ms_text(*w.gap.ms), w.is_per_token ? " a token" : "", ratio_text(w));
}

}  // namespace

std::string headline(const WorkloadLedger& w, const core::WorkloadRegression& regression,
                     double min_effect_ratio) {
  return fmt::format("{}. {}{}", verdict_text(w, regression.verdict, min_effect_ratio),
                     moved_text(w, regression), checks_not_held(w));
}

std::string headline(const WorkloadLedger& w) {
  const std::string doubts = checks_not_held(w);
  if (w.verdict == "same" && w.ratio_ci)
    return fmt::format("{} and {} are equally fast at {} ({}).{}", w.a.engine, w.b.engine, w.name,
                       ratio_text(w), doubts);
  const bool is_told = (w.verdict == "slower" || w.verdict == "faster") && w.ratio && w.gap.ms;
  if (!is_told)
    return fmt::format("Nothing can be told about {} at {}: {}.{}", w.a.engine, w.name, why_not_told(w),
                       doubts);
  const double factor = std::max(*w.ratio, 1 / *w.ratio);
  return fmt::format("{} is {:.{}f}x {} than {} at {} ({} ms{}): {}.{}", w.a.engine, factor,
                     factor < 1.1 ? 3 : 2, w.verdict, w.b.engine, w.name, signed_ms_text(*w.gap.ms),
                     w.is_per_token ? " a token" : "", where_it_lives(w), doubts);
}

std::string headline(const core::Ledger& ledger) {
  if (ledger.workloads.empty()) return "Nothing can be told: the record holds no workload.";
  std::vector<std::string> sentences;
  for (const WorkloadLedger& workload : ledger.workloads) sentences.push_back(headline(workload));
  return fmt::format("{}", fmt::join(sentences, "\n"));
}

}  // namespace opledger::report
