// quiet: was the machine itself steady enough for any of this?
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "core/ledger/checks.h"
#include "core/stats/summary.h"

namespace opledger::core::detail {

namespace {

// Of the threads' time, how much they may have waited for a core that somebody else had.
constexpr double kRunDelayRatio = 0.02;
// Without run delay: a preemption costs about a scheduler slice, 3 ms, so this is about 3%.
constexpr double kSwitchesPerThreadSecond = 10;
constexpr double kDriftRatio = 0.03;
constexpr double kLaunchSpreadRatio = 0.05;

Check undisturbed(const SideSamples& samples) {
  Check check{"quiet",
              side_name(samples.side),
              CheckStatus::kNotRun,
              std::nullopt,
              std::nullopt,
              "the engine reports neither how long threads waited nor switches"};
  double delay_ns = 0;
  double watched_ns = 0;  // of threads whose waiting is known
  double thread_ns = 0;
  double switches = 0;
  bool has_switches = false;
  for (const Block* block : samples.all_timed()) {
    const auto elapsed = static_cast<double>(block->elapsed_ns);
    for (const ThreadUse& thread : block->threads) {
      thread_ns += elapsed;
      if (!thread.run_delay_ns) continue;
      delay_ns += static_cast<double>(*thread.run_delay_ns);
      watched_ns += elapsed;
    }
    if (!block->involuntary_switches) continue;
    switches += static_cast<double>(*block->involuntary_switches);
    has_switches = true;
  }
  if (thread_ns <= 0 || (watched_ns <= 0 && !has_switches)) return check;
  const double per_second = switches / (thread_ns * 1e-9);
  const std::string switches_text =
      fmt::format("{:.0f} involuntary switches, {:.1f} per thread and second", switches, per_second);
  bool held = per_second <= kSwitchesPerThreadSecond;
  if (watched_ns > 0) {
    check.value = delay_ns / watched_ns;
    check.limit = kRunDelayRatio;
    if (delay_ns > 0) held = *check.value <= kRunDelayRatio;
    check.text = fmt::format("threads waited {:.2f}% of their time for a core (at most {:.0f}%)",
                             100 * *check.value, 100 * kRunDelayRatio);
    if (has_switches) check.text += "; " + switches_text;
  } else {
    check.value = per_second;
    check.limit = kSwitchesPerThreadSecond;
    check.text = fmt::format("{} (at most {:.0f}); how long threads waited for a core is not known",
                             switches_text, kSwitchesPerThreadSecond);
  }
  check.status = held ? CheckStatus::kHeld : CheckStatus::kFailed;
  return check;
}

std::string percent(double ratio) {
  return fmt::format("{:.0f}%", 100 * ratio);
}

std::string contamination_text(const PairSamples& pair) {
  const Contamination& found = pair.a.contamination;
  if (found.stints.empty()) return fmt::format("none of {} stints was contaminated", found.watched);
  const std::string what = fmt::format(
      "{} of {} stints contaminated: in {} threads waited for a core over {} of their time, in {} more they "
      "used over {} less of the cores than usual",
      found.stints.size(), found.watched, found.waited, percent(kWaitingRatio), found.stolen,
      percent(kStolenRatio));
  if (found.is_too_much)
    return fmt::format("{}; {} of {}'s and {} of {}'s (at most {}, and {} apart), so none is left out", what,
                       percent(found.side_ratio[0]), pair.name_a, percent(found.side_ratio[1]), pair.name_b,
                       percent(kMostContaminated), percent(kContaminationApart));
  if (found.leaves_too_little)
    return what + "; without them too few launch groups would be left, so none is left out";
  return what + "; left out";
}

Check contaminated(const PairSamples& pair) {
  const Contamination& found = pair.a.contamination;
  Check check{"quiet",
              "",
              CheckStatus::kNotRun,
              std::nullopt,
              kMostContaminated,
              "the engines do not report what their threads did"};
  if (found.watched == 0) return check;
  check.value = static_cast<double>(found.stints.size()) / found.watched;
  const bool held = !found.is_too_much && !found.leaves_too_little;
  check.status = held ? CheckStatus::kHeld : CheckStatus::kFailed;
  check.text = contamination_text(pair);
  return check;
}

Check first_and_last(const SideSamples& samples) {
  Check check{"quiet",
              side_name(samples.side),
              CheckStatus::kNotRun,
              std::nullopt,
              kDriftRatio,
              "no launch group has four baselines"};
  const TurnFigures turns = medians_by_turn(samples, "baseline", 1.0, [](const Block& b, size_t p) {
    return static_cast<double>(b.passes[p].graph_ns);
  });
  std::map<int, std::vector<double>> by_group;
  for (const auto& [key, ns] : turns) by_group[key.round.first].push_back(ns);
  std::vector<double> drifts;
  for (const auto& [group, levels] : by_group) {
    if (levels.size() < 4) continue;
    const auto half = static_cast<std::ptrdiff_t>(levels.size() / 2);
    const double first = *median_of(std::vector<double>(levels.begin(), levels.begin() + half));
    const double last = *median_of(std::vector<double>(levels.end() - half, levels.end()));
    // Of either sign: one group that slows and one that quickens are two disturbances, not none.
    drifts.push_back(std::abs(last / first - 1));
  }
  if (drifts.empty()) return check;
  check.value = *median_of(drifts);
  check.status = *check.value <= kDriftRatio ? CheckStatus::kHeld : CheckStatus::kFailed;
  check.text = fmt::format("last baselines against first: {:.1f}% apart (at most {:.0f}%)",
                           100 * *check.value, 100 * kDriftRatio);
  return check;
}

Check launches(const SideSamples& samples) {
  Check check{"quiet",      side_name(samples.side), CheckStatus::kNotRun,
              std::nullopt, kLaunchSpreadRatio,      "one launch group cannot be compared with another"};
  const std::vector<double> groups = values_of(samples.graph_ms);
  if (groups.size() < 2) return check;
  const auto [low, high] = std::minmax_element(groups.begin(), groups.end());
  check.value = (*high - *low) / *mean_of(groups);
  check.status = *check.value <= kLaunchSpreadRatio ? CheckStatus::kHeld : CheckStatus::kFailed;
  check.text = fmt::format("launches spread over {:.1f}% (at most {:.0f}%)", 100 * *check.value,
                           100 * kLaunchSpreadRatio);
  return check;
}

}  // namespace

void add_quiet(const PairSamples& pair, std::vector<Check>& checks) {
  checks.push_back(contaminated(pair));
  for (const Side side : kBothSides) {
    checks.push_back(undisturbed(pair.side(side)));
    checks.push_back(first_and_last(pair.side(side)));
    checks.push_back(launches(pair.side(side)));
  }
}

}  // namespace opledger::core::detail
