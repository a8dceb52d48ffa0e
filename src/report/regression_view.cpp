// The ledger's view with what a regression test asks for: a verdict instead of the closing sentence, only the
// rows that moved, their share of the pass, what the graphs execute differently, and only the checks that did
// not hold.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fmt/format.h>

#include "core/base/plain_text.h"
#include "report/numbers.h"
#include "report/report.h"
#include "report/view.h"

namespace opledger::report {

namespace {

using core::Check;
using core::CheckStatus;
using core::GraphChange;
using core::WorkloadRegression;

// Two engines of different families differ in everything: whoever wants all of it takes the JSON.
constexpr size_t kMostGraphChanges = 20;

bool is_worth_showing(const Check& check) {
  return check.status == CheckStatus::kFailed ||
         (check.status == CheckStatus::kNotRun && core::must_run(check));
}

std::string check_counts(const std::vector<Check>& checks) {
  const auto count = [&](CheckStatus status) {
    return std::count_if(checks.begin(), checks.end(),
                         [status](const Check& check) { return check.status == status; });
  };
  return fmt::format("checks: {} held, {} failed, {} not run", count(CheckStatus::kHeld),
                     count(CheckStatus::kFailed), count(CheckStatus::kNotRun));
}

// Within the five columns that the terminal has for it.
std::string pass_share_text(const std::optional<double>& share_ratio) {
  if (!share_ratio) return "-";
  const double percent = 100 * *share_ratio;
  return fmt::format("{:+.{}f}%", percent, std::abs(percent) < 9.95 ? 1 : 0);
}

std::string change_text(const GraphChange& change) {
  const std::string what =
      fmt::format("{} {} x {} ({}{}{})", core::graph_change_name(change.kind), change.per_pass, change.op,
                  change.category, change.role.empty() ? "" : " ", change.role);
  if (change.before && change.after)
    return fmt::format("{}: {}; before {}", what, *change.after, *change.before);
  return fmt::format("{}: {}", what, change.after ? *change.after : change.before.value_or(""));
}

std::vector<std::string> change_texts(const WorkloadRegression& regression) {
  if (!regression.graph_changes)
    return {"not known: the session ended before both engines told their graphs"};
  const std::vector<GraphChange>& changes = *regression.graph_changes;
  if (changes.empty()) return {"nothing: both execute the same operations"};
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(changes.size(), kMostGraphChanges); ++i)
    texts.push_back(change_text(changes[i]));
  if (changes.size() > kMostGraphChanges)
    texts.push_back(fmt::format("{} more, which --json lists", changes.size() - kMostGraphChanges));
  return texts;
}

std::string title_of(const core::Regression& regression) {
  const core::Verdict verdict = regression.verdict();
  std::string text = core::regression_name(verdict);
  if (verdict == core::Verdict::kSame) text += " within " + percent_text(regression.min_effect_ratio);
  return fmt::format("{}: {} against {}", text, regression.ledger.engine_a, regression.ledger.engine_b);
}

core::Ledger shown_of(const core::Regression& regression) {
  core::Ledger ledger = regression.ledger;
  for (size_t i = 0; i < ledger.workloads.size(); ++i) {
    core::WorkloadLedger& workload = ledger.workloads[i];
    workload.rows.clear();
    for (const core::MovedRow& moved : regression.workloads[i].moved) workload.rows.push_back(moved.row);
    std::erase_if(workload.checks, [](const Check& check) { return !is_worth_showing(check); });
  }
  return ledger;
}

void add_regression(const core::WorkloadLedger& ledger, const WorkloadRegression& regression,
                    double min_effect_ratio, WorkloadView& view) {
  view.headline = plain_text(headline(ledger, regression, min_effect_ratio));
  view.totals.push_back(check_counts(ledger.checks));
  view.share_title = "pass";
  for (size_t i = 0; i < view.rows.size(); ++i)
    view.rows[i].share = pass_share_text(regression.moved[i].share_of_pass_ratio);
  for (const std::string& text : change_texts(regression)) view.graph_changes.push_back(plain_text(text));
}

}  // namespace

ReportView view_of(const core::Regression& regression) {
  ReportView view = view_of(shown_of(regression));
  view.title = plain_text(title_of(regression));
  for (size_t i = 0; i < view.workloads.size(); ++i)
    add_regression(regression.ledger.workloads[i], regression.workloads[i], regression.min_effect_ratio,
                   view.workloads[i]);
  return view;
}

}  // namespace opledger::report
