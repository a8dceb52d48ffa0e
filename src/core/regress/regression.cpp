#include "core/regress/regression.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace opledger::core {

namespace {

std::vector<MovedRow> moved_rows(const WorkloadLedger& workload) {
  std::vector<MovedRow> moved;
  const std::optional<double>& pass_ms = workload.b.wall.ms;
  for (const Row& row : workload.rows) {
    if (!row.is_real) continue;
    MovedRow& one = moved.emplace_back(MovedRow{row, std::nullopt});
    if (pass_ms && *pass_ms > 0) one.share_of_pass_ratio = *row.gap.ms / *pass_ms;
  }
  std::stable_sort(moved.begin(), moved.end(), [](const MovedRow& x, const MovedRow& y) {
    return std::abs(*x.row.gap.ms) > std::abs(*y.row.gap.ms);
  });
  return moved;
}

/// An input without graph where the session ended before it was known.
ScopedInput scoped_input(const Record& record, Side side, const std::string& workload,
                         const RulesByFamily& rules) {
  const GraphFacts* facts = record.graph(side, workload);
  const EngineFacts* engine = record.engine(side);
  if (facts == nullptr || engine == nullptr) return {};
  return {&facts->graph, rules.at(engine->family).get()};
}

WorkloadRegression workload_regression(const Record& record, const WorkloadLedger& workload,
                                       const RulesByFamily& rules, double min_effect_ratio) {
  WorkloadRegression regression;
  regression.verdict = regression_verdict(workload, min_effect_ratio);
  regression.moved = moved_rows(workload);
  const ScopedInput base = scoped_input(record, Side::kB, workload.name, rules);
  const ScopedInput head = scoped_input(record, Side::kA, workload.name, rules);
  if (base.graph != nullptr && head.graph != nullptr) regression.graph_changes = graph_changes(base, head);
  return regression;
}

}  // namespace

const char* regression_name(Verdict verdict) {
  if (verdict == Verdict::kSlower) return "regressed";
  return verdict == Verdict::kFaster ? "improved" : verdict_name(verdict);
}

Verdict Regression::verdict() const {
  const auto has = [this](Verdict wanted) {
    return std::any_of(workloads.begin(), workloads.end(),
                       [wanted](const WorkloadRegression& one) { return one.verdict == wanted; });
  };
  if (has(Verdict::kSlower)) return Verdict::kSlower;
  if (workloads.empty() || has(Verdict::kCannotTell)) return Verdict::kCannotTell;
  return has(Verdict::kFaster) ? Verdict::kFaster : Verdict::kSame;
}

Verdict regression_verdict(const WorkloadLedger& workload, double min_effect_ratio) {
  if (!workload.ratio || !workload.ratio_ci) return Verdict::kCannotTell;
  const auto [low, high] = *workload.ratio_ci;
  const Verdict verdict =
      verdict_of(std::log(*workload.ratio), {std::log(low), std::log(high)}, min_effect_ratio);
  // Launches of one engine differ by the floor: a gap below it is no news, though its interval excludes 0.
  const bool is_in_noise =
      !workload.gap.ms || !workload.noise_floor_ms || std::abs(*workload.gap.ms) <= *workload.noise_floor_ms;
  return is_in_noise && verdict != Verdict::kSame ? Verdict::kCannotTell : verdict;
}

Result<Regression> regression_of(const Record& record, const RulesByFamily& rules, double min_effect_ratio) {
  Result<Ledger> ledger = analyse(record, rules);
  if (!ledger) return ledger.error();
  Regression regression;
  regression.min_effect_ratio = min_effect_ratio;
  for (const WorkloadLedger& workload : ledger->workloads)
    regression.workloads.push_back(workload_regression(record, workload, rules, min_effect_ratio));
  regression.ledger = std::move(*ledger);
  return regression;
}

}  // namespace opledger::core
