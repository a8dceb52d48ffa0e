// deterministic, identical, closes: is what was measured the engine's own, undisturbed work?
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
#include <set>

#include "core/ledger/checks.h"
#include "core/stats/summary.h"

namespace opledger::core::detail {

namespace {

constexpr double kClosesPrefill = 0.02;
constexpr double kClosesDecode = 0.03;
constexpr double kClosesHalfWidth = 0.02;

using Digest = std::vector<std::string>;

std::set<Digest> baseline_digests(const SideSamples& samples, std::optional<int> group) {
  std::set<Digest> digests;
  for (const Block* block : samples.all_timed()) {
    if (block->arm != "baseline" || (group && block->place.group != *group)) continue;
    for (const Pass& pass : block->passes) digests.insert(block->digests[static_cast<size_t>(pass.digest)]);
  }
  return digests;
}

Check deterministic(const SideSamples& samples) {
  Check check{"deterministic",   side_name(samples.side), CheckStatus::kNotRun, std::nullopt, 1.0,
              "no baseline pass"};
  if (samples.baseline_passes == 0) return check;
  const std::set<Digest> digests = baseline_digests(samples, std::nullopt);
  if (digests.count(Digest{}) > 0) {
    check.text = "baseline passes without a digest";
    return check;
  }
  const size_t different = digests.size();
  check.value = static_cast<double>(different);
  check.status = different == 1 ? CheckStatus::kHeld : CheckStatus::kFailed;
  check.text = fmt::format("{} baseline passes gave {} different digests",
                           samples.baseline_passes + samples.dropped_passes, different);
  return check;
}

struct ArmFindings {
  std::set<std::string> unequal, bad_logits, unequal_state, shared, arms, state_arms;
  std::set<std::string> unseen;  // logits or their digests are not in the record
  int passes = 0;
};

void look_at_logits(const Block& block, ArmFindings& findings) {
  if (!block.logits)
    findings.unseen.insert(block.arm);
  else if (*block.logits != "ok")
    findings.bad_logits.insert(block.arm);
  if (block.shared_inputs.value_or(0) != 0) findings.shared.insert(block.arm);
}

/// A replay that changed the result loses units and is verified again, or is left out: what counts is the arm
/// as it was timed, so its last verification.
bool is_superseded(const SideSamples& samples, const Block& block, const std::set<std::string>& timed_arms) {
  const auto is_of_arm = [&](const auto& one) { return one.id == block.arm; };
  if (std::none_of(samples.arms.begin(), samples.arms.end(), is_of_arm)) return false;
  if (timed_arms.count(block.arm) == 0) return true;
  return std::any_of(samples.verify_blocks.begin(), samples.verify_blocks.end(), [&](const Block* other) {
    return other->arm == block.arm && other->place.sequence > block.place.sequence;
  });
}

void look_at_states(const SideSamples& samples, ArmFindings& findings) {
  // Equal across launches too: the state is computed from zero by the same arithmetic on the same tokens.
  std::optional<std::string> expected;
  std::set<Digest> expected_rows;
  for (const Block* block : samples.verify_blocks) {
    if (block->arm != "baseline") continue;
    if (!expected) expected = block->state_digest;
    expected_rows.insert(block->digests.begin(), block->digests.end());
  }
  for (const Block* block : samples.verify_blocks) {
    if (is_superseded(samples, *block, findings.arms)) continue;
    look_at_logits(*block, findings);
    const auto is_expected = [&](const Digest& rows) { return expected_rows.count(rows) > 0; };
    if (!expected_rows.empty() && !std::all_of(block->digests.begin(), block->digests.end(), is_expected))
      findings.unequal.insert(block->arm);
    if (!block->state_digest || !expected) continue;
    findings.state_arms.insert(block->arm);
    if (block->state_digest != expected) findings.unequal_state.insert(block->arm);
  }
}

ArmFindings look_at_arms(const SideSamples& samples) {
  ArmFindings findings;
  for (const Block* block : samples.all_timed()) {
    const std::set<Digest> expected = baseline_digests(samples, block->place.group);
    findings.arms.insert(block->arm);
    look_at_logits(*block, findings);
    for (const Pass& pass : block->passes) {
      ++findings.passes;
      const Digest& digest = block->digests[static_cast<size_t>(pass.digest)];
      if (digest.empty())
        findings.unseen.insert(block->arm);
      else if (expected.count(digest) == 0)
        findings.unequal.insert(block->arm);
    }
  }
  look_at_states(samples, findings);
  return findings;
}

std::string joined(const std::set<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<std::string> problems_of(const ArmFindings& findings) {
  std::vector<std::string> problems;
  if (!findings.unequal.empty())
    problems.push_back("other logits than the baseline in " + joined(findings.unequal));
  if (!findings.bad_logits.empty())
    problems.push_back("logits not finite or constant in " + joined(findings.bad_logits));
  if (!findings.unequal_state.empty())
    problems.push_back("other KV or state bytes than the baseline in " + joined(findings.unequal_state));
  if (!findings.shared.empty())
    problems.push_back("copies could join their originals' runs in " + joined(findings.shared));
  return problems;
}

Check identical(const SideSamples& samples) {
  Check check{"identical", side_name(samples.side), CheckStatus::kNotRun, std::nullopt,
              0.0,         "no baseline pass"};
  if (samples.baseline_passes == 0) return check;
  const ArmFindings findings = look_at_arms(samples);
  const std::vector<std::string> problems = problems_of(findings);
  std::set<std::string> damaged = findings.unequal;
  for (const auto* more : {&findings.bad_logits, &findings.unequal_state, &findings.shared})
    damaged.insert(more->begin(), more->end());
  check.value = static_cast<double>(damaged.size());
  std::set<std::string> unverified;
  std::set_difference(findings.arms.begin(), findings.arms.end(), findings.state_arms.begin(),
                      findings.state_arms.end(), std::inserter(unverified, unverified.end()));
  if (!problems.empty()) {
    check.status = CheckStatus::kFailed;
    check.text = fmt::format("{}", fmt::join(problems, "; "));
  } else if (!findings.unseen.empty()) {
    check.text = "logits were not looked at or not digested for " + joined(findings.unseen);
  } else if (!unverified.empty()) {
    check.text = fmt::format("logits are equal in {} passes, but KV and state were not digested for {}",
                             findings.passes, joined(unverified));
  } else {
    check.status = CheckStatus::kHeld;
    check.text = fmt::format("{} passes of {} arms: logits, KV and state equal the baseline's",
                             findings.passes, findings.arms.size());
  }
  return check;
}

struct StampSums {
  int passes = 0;
  int broken = 0;   ///< whose parts do not add up to the pass, to the nanosecond
  int unknown = 0;  ///< of these: whose parts are not all in the record
};

bool adds_up(const Block& block, size_t pass) {
  // Taken off one by one: sums of hostile times would overflow.
  int64_t left = block.passes[pass].graph_ns;
  const auto take = [&left](int64_t ns) { left = left < 0 ? left : left - ns; };
  const auto [first, end] = block.rows_of(pass);
  for (size_t row = first; row < end; ++row) {
    take((*block.head_ns)[row]);
    take((*block.tail_ns)[row]);
    for (const int64_t ns : (*block.unit_ns)[row]) take(ns);
    if (!block.copy_ns) continue;
    for (const int64_t ns : (*block.copy_ns)[row]) take(ns);
  }
  return left == 0;
}

StampSums stamp_sums(const SideSamples& samples) {
  StampSums sums;
  for (const Block* block : samples.blocks) {
    if (!is_stamped(block->arm)) continue;
    const bool is_whole = block->unit_ns && block->head_ns && block->tail_ns;
    for (size_t p = 0; p < block->passes.size(); ++p) {
      ++sums.passes;
      if (!is_whole) ++sums.unknown;
      if (!is_whole || !adds_up(*block, p)) ++sums.broken;
    }
  }
  return sums;
}

// Of a stamped pass, all units and the pass itself share every disturbance: what part of the pass the units
// are, times how long the pass is, is closure without it.
GroupFigures closures(const SideSamples& samples) {
  GroupFigures ratios = medians_by_group(
      samples, "stamp", samples.ms_per_ns, [&](const Block& block, size_t pass) -> std::optional<double> {
        const std::optional<double> price = samples.price_of(block.place.group);
        const std::optional<double> length = length_ns(samples, block, pass);
        if (!block.unit_ns || !price || !length) return std::nullopt;
        const UnitMask all = samples.mask_of_all();
        const std::vector<double> steps_ns = masked_sums(block, *block.unit_ns, pass, all);
        const double part = std::accumulate(steps_ns.begin(), steps_ns.end(), 0.0) /
                            static_cast<double>(block.passes[pass].graph_ns);
        return part * *length - *price * static_cast<double>(samples.calls_in(all));
      });
  for (auto& [group, ratio] : ratios) ratio /= samples.graph_ms.at(group);
  return ratios;
}

std::string replay_all_text(const PairSamples& pair, Side side) {
  const SideSamples& samples = pair.side(side);
  const auto replays = replays_of(samples, "all", samples.mask_of_all(), std::nullopt);
  const std::optional<double> pass = median_of(values_of(samples.graph_ms));
  if (replays.empty() || replays.front().increment_ms.empty() || !pass) return {};
  const ReplayFigures& best = replays.front();
  return fmt::format("; replay of every unit ({} weights) gives {:.3f}", best.weights,
                     *median_of(values_of(best.increment_ms)) / *pass);
}

Check closes(const PairSamples& pair, Side side) {
  const SideSamples& samples = pair.side(side);
  const double limit = pair.workload->kind == WorkloadKind::kPrefill ? kClosesPrefill : kClosesDecode;
  Check check{"closes", side_name(side), CheckStatus::kNotRun, std::nullopt, limit, ""};
  const std::optional<Estimate> closure = mean_interval(values_of(closures(samples)));
  if (!closure) {
    check.text =
        samples.price_ns.empty() ? "no price of a stamp in the record" : "no stamped pass beside a baseline";
    return check;
  }
  const StampSums sums = stamp_sums(samples);
  check.value = closure->centre;
  check.text = fmt::format(
      "stamps add up to {} of the baseline (1 ± {:.2f}){}",
      closure->interval ? fmt::format("{:.4f} ± {:.4f}", closure->centre, closure->interval->half_width())
                        : fmt::format("{:.4f}", closure->centre),
      limit, replay_all_text(pair, side));
  if (sums.broken > 0) {
    check.status = CheckStatus::kFailed;
    check.text += fmt::format("; in {} of {} stamped passes head, units and tail do not add up to the pass",
                              sums.broken, sums.passes);
    if (sums.unknown > 0) check.text += fmt::format(" ({} of them lack one of the three)", sums.unknown);
  } else if (std::abs(closure->centre - 1) > limit) {
    check.status = CheckStatus::kFailed;
  } else if (!closure->interval) {
    check.text += "; no interval below three launch groups";
  } else {
    const bool is_sharp = closure->interval->half_width() < kClosesHalfWidth;
    check.status = is_sharp ? CheckStatus::kHeld : CheckStatus::kFailed;
    if (!is_sharp) check.text += "; its interval is too wide (half-width must stay under 0.02)";
  }
  return check;
}

}  // namespace

void add_result_checks(const PairSamples& pair, std::vector<Check>& checks) {
  for (const Side side : kBothSides) checks.push_back(deterministic(pair.side(side)));
  for (const Side side : kBothSides) checks.push_back(identical(pair.side(side)));
}

void add_closes(const PairSamples& pair, std::vector<Check>& checks) {
  for (const Side side : kBothSides) checks.push_back(closes(pair, side));
}

}  // namespace opledger::core::detail
