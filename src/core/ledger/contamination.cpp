#include "core/ledger/contamination.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "core/stats/summary.h"

namespace opledger::core::detail {

namespace {

/// What one engine's threads did in a stint, in ns, summed over threads. Its wall time counts once: a thread
/// that hardly ran takes no CPU time away from the others.
struct Threads {
  double wall = 0, cpu = 0, watched_wall = 0, delay = 0;

  /// Cores in use.
  [[nodiscard]] double cpu_ratio() const { return cpu / wall; }
  [[nodiscard]] bool waited() const { return delay > kWaitingRatio * watched_wall; }
};

using Stints = std::map<int64_t, Threads>;

Stints stints_of(const Record& record, Side side, const std::string& workload) {
  Stints stints;
  for (const Block& block : record.blocks) {
    if (block.is_verify || block.place.side != side || block.place.workload != workload) continue;
    if (block.threads.empty()) continue;
    const auto wall = static_cast<double>(block.elapsed_ns);
    Threads& threads = stints[block.place.stint];
    threads.wall += wall;
    for (const ThreadUse& thread : block.threads) {
      threads.cpu += static_cast<double>(thread.cpu_ns);
      if (!thread.run_delay_ns) continue;
      threads.watched_wall += wall;
      threads.delay += static_cast<double>(*thread.run_delay_ns);
    }
  }
  std::erase_if(stints, [](const auto& entry) { return entry.second.wall <= 0; });
  return stints;
}

double usual_cpu_ratio(const Stints& stints) {
  std::vector<double> ratios;
  ratios.reserve(stints.size());
  for (const auto& [stint, threads] : stints) ratios.push_back(threads.cpu_ratio());
  return median_of(ratios).value_or(0);
}

}  // namespace

bool Contamination::is_too_much() const {
  const auto [low, high] = std::minmax(side_ratio[0], side_ratio[1]);
  return high > kMostContaminated || high - low > kContaminationApart;
}

Contamination contamination_of(const Record& record, const std::string& workload) {
  Contamination found;
  std::set<int64_t> watched;
  std::set<int64_t> waited;
  for (const Side side : {Side::kA, Side::kB}) {
    const Stints stints = stints_of(record, side, workload);
    const double least_cpu_ratio = (1 - kStolenRatio) * usual_cpu_ratio(stints);
    int contaminated = 0;
    for (const auto& [stint, threads] : stints) {
      watched.insert(stint);
      if (threads.waited()) waited.insert(stint);
      if (!threads.waited() && threads.cpu_ratio() >= least_cpu_ratio) continue;
      found.stints.insert(stint);
      ++contaminated;
    }
    if (!stints.empty())
      found.side_ratio[side == Side::kA ? 0 : 1] = contaminated / static_cast<double>(stints.size());
  }
  found.watched = static_cast<int>(watched.size());
  found.waited = static_cast<int>(waited.size());
  found.stolen = static_cast<int>(found.stints.size() - waited.size());
  return found;
}

}  // namespace opledger::core::detail
