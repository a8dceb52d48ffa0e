// What a whole ledger amounts to.
#include "core/ledger/ledger.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace opledger::core {

namespace {

constexpr std::array<std::string_view, 4> kMustRun{"identical", "complete", "closes", "clocks agree"};

bool counts_as_held(const Check& check) {
  if (check.status == CheckStatus::kHeld) return true;
  return check.status == CheckStatus::kNotRun && !must_run(check);
}

}  // namespace

bool excludes_zero(const Measured& figure) {
  return figure.ci_ms && ((*figure.ci_ms)[0] > 0 || (*figure.ci_ms)[1] < 0);
}

bool must_run(const Check& check) {
  return std::find(kMustRun.begin(), kMustRun.end(), check.name) != kMustRun.end();
}

bool Ledger::every_check_held() const {
  return !workloads.empty() &&
         std::all_of(workloads.begin(), workloads.end(), [](const WorkloadLedger& workload) {
           return std::all_of(workload.checks.begin(), workload.checks.end(), counts_as_held);
         });
}

const char* check_status_name(CheckStatus status) {
  if (status == CheckStatus::kHeld) return "held";
  return status == CheckStatus::kFailed ? "failed" : "not run";
}

int exit_code_of(const Ledger& ledger) {
  const bool is_told = std::none_of(ledger.workloads.begin(), ledger.workloads.end(),
                                    [](const WorkloadLedger& w) { return w.verdict == "cannot tell"; });
  return is_told && ledger.every_check_held() ? 0 : 4;
}

}  // namespace opledger::core
