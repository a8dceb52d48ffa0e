#include "core/ledger/precision.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

namespace opledger::core {

namespace {

/// How large a gap is at the least and at the most, in ms, of whichever sign. Without an interval: nobody
/// knows.
struct Size {
  double least_ms = 0;
  double most_ms = 0;
};

std::optional<Size> size_of(const Measured& gap) {
  if (!gap.ci_ms) return std::nullopt;
  const auto [low, high] = *gap.ci_ms;
  const double most = std::max(std::abs(low), std::abs(high));
  return Size{low > 0 || high < 0 ? std::min(std::abs(low), std::abs(high)) : 0, most};
}

bool is_known(const Measured& figure, double half_width_ms) {
  return figure.ci_ms && ((*figure.ci_ms)[1] - (*figure.ci_ms)[0]) / 2 <= half_width_ms;
}

// What the second largest gap is at the least: rows that stay below are neither first nor second.
double least_of_second_ms(const std::vector<Row>& rows) {
  std::vector<double> least;
  for (const Row& row : rows) {
    if (const std::optional<Size> size = size_of(row.gap)) least.push_back(size->least_ms);
  }
  if (least.size() < 2) return 0;
  std::nth_element(least.begin(), least.begin() + 1, least.end(), std::greater<>());
  return least[1];
}

}  // namespace

std::vector<std::string> not_known_to(const WorkloadLedger& workload, double precision_ratio) {
  std::vector<std::string> open;
  if (!workload.a.graph.ms || !workload.b.graph.ms) return {"the gap"};
  const double half_width_ms = precision_ratio * (*workload.a.graph.ms + *workload.b.graph.ms) / 2;
  if (!is_known(workload.gap, half_width_ms)) open.emplace_back("the gap");
  const double second_ms = least_of_second_ms(workload.rows);
  for (const Row& row : workload.rows) {
    const std::optional<Size> size = size_of(row.gap);
    const bool could_be_second = !size || size->most_ms >= second_ms;
    if (could_be_second && !is_known(row.gap, half_width_ms)) open.push_back(row.scope);
  }
  return open;
}

bool is_precise_enough(const Ledger& ledger, double precision_ratio) {
  const auto is_enough = [&](const WorkloadLedger& workload) {
    const int groups = std::min(workload.a.launch_groups, workload.b.launch_groups);
    const bool is_look =
        std::find(kPrecisionLooks.begin(), kPrecisionLooks.end(), groups) != kPrecisionLooks.end();
    return is_look && !workload.is_contaminated && not_known_to(workload, precision_ratio).empty();
  };
  return !ledger.workloads.empty() &&
         std::all_of(ledger.workloads.begin(), ledger.workloads.end(), is_enough);
}

}  // namespace opledger::core
