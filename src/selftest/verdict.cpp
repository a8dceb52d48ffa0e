#include "selftest/verdict.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

namespace opledger::selftest {

namespace {

struct SpunPerPass {
  double spins = 0, mean_ns = 0, late_ratio = 0;

  [[nodiscard]] double ns() const { return spins * mean_ns; }
};

/// Counted in baselines, whose passes hold every spin once; measured over all arms.
std::optional<SpunPerPass> spun_by(const core::Record& record, core::Side side, const std::string& workload) {
  core::SpunWork all;
  int64_t baseline_spins = 0;
  size_t baseline_passes = 0;
  for (const core::Block& block : record.blocks) {
    const bool is_counted = block.place.side == side && block.place.workload == workload && block.planted;
    if (!is_counted || block.is_verify) continue;
    all.spins += block.planted->spins;
    all.spun_ns += block.planted->spun_ns;
    all.late_spins += block.planted->late_spins;
    all.late_ns += block.planted->late_ns;
    if (block.arm != "baseline") continue;
    baseline_spins += block.planted->spins;
    baseline_passes += block.passes.size();
  }
  const int64_t on_time = all.spins - all.late_spins;
  if (baseline_passes == 0 || on_time < 1) return std::nullopt;
  return SpunPerPass{static_cast<double>(baseline_spins) / static_cast<double>(baseline_passes),
                     static_cast<double>(all.spun_ns - all.late_ns) / static_cast<double>(on_time),
                     static_cast<double>(all.late_spins) / static_cast<double>(all.spins)};
}

core::Measured turned_round(const core::Measured& figure) {
  core::Measured out;
  if (figure.ms) out.ms = -*figure.ms;
  if (figure.ci_ms) out.ci_ms = std::array<double, 2>{-(*figure.ci_ms)[1], -(*figure.ci_ms)[0]};
  return out;
}

bool holds(const core::Measured& gap, double truth_ms) {
  if (!gap.ci_ms) return false;
  const double tolerance_ms = kSizeToleranceRatio * std::abs(truth_ms);
  return (*gap.ci_ms)[0] - tolerance_ms <= truth_ms && truth_ms <= (*gap.ci_ms)[1] + tolerance_ms;
}

std::optional<double> copies_gap_ms(const core::Row& row) {
  if (!row.replay_a || !row.replay_b || !row.replay_a->copy_ms || !row.replay_b->copy_ms) return std::nullopt;
  return *row.replay_b->copy_ms - *row.replay_a->copy_ms;
}

}  // namespace

std::optional<Truth> truth_of(const core::Record& record) {
  if (record.workloads.empty()) return std::nullopt;
  const core::WorkloadFacts& workload = record.workloads.front();
  const std::optional<SpunPerPass> slow = spun_by(record, core::Side::kB, workload.id);
  if (!slow) return std::nullopt;
  const SpunPerPass idle = spun_by(record, core::Side::kA, workload.id).value_or(SpunPerPass{});
  const double parts =
      workload.kind == core::WorkloadKind::kDecode ? static_cast<double>(workload.tokens_per_pass) : 1.0;
  return Truth{(slow->ns() - idle.ns()) * 1e-6 / parts, slow->spins / parts, slow->mean_ns, slow->late_ratio};
}

std::string RowVerdict::text() const {
  if (!truth) return "the engine counted no spins: nothing was planted";
  if (!gap.ci_ms) return "unresolved: below three launch groups there is no interval; give a longer --budget";
  std::vector<std::string> wrong;
  if (!is_found) wrong.emplace_back("not found");
  if (!holds_size) wrong.emplace_back("wrong size");
  if (!wrong_rows.empty()) wrong.push_back(fmt::format("other rows: {}", fmt::join(wrong_rows, ", ")));
  return wrong.empty() ? "found" : fmt::format("{}", fmt::join(wrong, "; "));
}

RowVerdict judge_row(const core::WorkloadLedger& ledger, const std::string& row,
                     const std::optional<Truth>& truth) {
  RowVerdict verdict;
  verdict.row = row;
  verdict.truth = truth;
  for (const core::Row& one : ledger.rows) {
    const core::Measured gap = turned_round(one.gap);
    if (one.scope == row) {
      verdict.gap = gap;
      verdict.copies_ms = copies_gap_ms(one);
      verdict.is_found = truth && one.is_real && gap.ms.value_or(0) > 0;
      verdict.holds_size = truth && holds(gap, truth->ms);
    } else if (one.is_real && gap.ms && (!truth || std::abs(*gap.ms) > kSizeToleranceRatio * truth->ms)) {
      verdict.wrong_rows.push_back(fmt::format("{} {:+.3f}", one.scope, *gap.ms));
    }
  }
  return verdict;
}

const std::vector<Fault>& known_faults() {
  static const std::vector<Fault> faults{
      {"unsorted_node", "a node in no category", {"complete"}, false},
      {"broken_fusion", "a broken fusion", {"fusion", "identical"}, false},
      {"changed_result", "a changed result", {"identical"}, false},
      {"idle_copies", "a replay that does nothing", {"clocks agree"}, true},
      {"warm_copies", "a warm replay", {"clocks agree"}, true},
  };
  return faults;
}

std::optional<core::Check> fired_check(const core::WorkloadLedger& ledger, core::Side side,
                                       const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    for (const core::Check& check : ledger.checks) {
      const bool is_asked = check.name == name && check.engine == core::side_name(side);
      if (is_asked && check.status == core::CheckStatus::kFailed && check.is_shown) return check;
    }
  }
  return std::nullopt;
}

FaultVerdict judge_fault(const Fault& fault, const core::WorkloadLedger& ledger) {
  FaultVerdict verdict{fault.name, fault.title, FaultVerdict::Outcome::kQuiet,
                       fmt::format("{}", fmt::join(fault.checks, ", ")), ""};
  if (const auto alarm = fired_check(ledger, core::Side::kA, fault.checks)) {
    verdict.outcome = FaultVerdict::Outcome::kFalseAlarm;
    verdict.check = alarm->name;
    verdict.text = fmt::format("failed on the side without the fault: {}", alarm->text);
  } else if (const auto fired = fired_check(ledger, core::Side::kB, fault.checks)) {
    verdict.outcome = FaultVerdict::Outcome::kFired;
    verdict.check = fired->name;
    verdict.text = fired->text;
  } else {
    verdict.text = "no check noticed it";
  }
  return verdict;
}

const char* outcome_name(FaultVerdict::Outcome outcome) {
  switch (outcome) {
    case FaultVerdict::Outcome::kFired:
      return "fired";
    case FaultVerdict::Outcome::kQuiet:
      return "quiet";
    case FaultVerdict::Outcome::kFalseAlarm:
      return "false alarm";
    case FaultVerdict::Outcome::kNotRun:
      break;
  }
  return "not run";
}

}  // namespace opledger::selftest
