#include "core/ledger/contamination.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <vector>

#include "core/stats/interval.h"
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

/// All timed ones; those whose threads do not tell have no wall time.
Stints stints_of(const Record& record, Side side, const std::string& workload) {
  Stints stints;
  for (const Block& block : record.blocks) {
    if (block.is_verify || block.place.side != side || block.place.workload != workload) continue;
    Threads& threads = stints[block.place.stint];
    if (block.threads.empty()) continue;
    const auto wall = static_cast<double>(block.elapsed_ns);
    threads.wall += wall;
    for (const ThreadUse& thread : block.threads) {
      threads.cpu += static_cast<double>(thread.cpu_ns);
      if (!thread.run_delay_ns) continue;
      threads.watched_wall += wall;
      threads.delay += static_cast<double>(*thread.run_delay_ns);
    }
  }
  return stints;
}

double usual_cpu_ratio(const Stints& stints) {
  std::vector<double> ratios;
  for (const auto& [stint, threads] : stints) {
    if (threads.wall > 0) ratios.push_back(threads.cpu_ratio());
  }
  return median_of(ratios).value_or(0);
}

struct Found {
  std::set<int64_t> watched, waited, stolen;
};

void look_at(const Stints& stints, Found& found) {
  const double least_cpu_ratio = (1 - kStolenRatio) * usual_cpu_ratio(stints);
  for (const auto& [stint, threads] : stints) {
    if (threads.wall <= 0) continue;
    found.watched.insert(stint);
    if (threads.waited()) found.waited.insert(stint);
    if (threads.cpu_ratio() < least_cpu_ratio) found.stolen.insert(stint);
  }
}

bool is_too_much(const Contamination& found, const std::array<Stints, 2>& sides) {
  std::array<double, 2> lost{0, 0};
  for (size_t s = 0; s < 2; ++s) lost[s] = found.side_ratio[s] * static_cast<double>(sides[s].size());
  const double all_ratio = found.watched > 0 ? static_cast<double>(found.stints.size()) / found.watched : 0;
  const double most = std::max({found.side_ratio[0], found.side_ratio[1], all_ratio});
  const bool is_apart = std::abs(found.side_ratio[0] - found.side_ratio[1]) > kContaminationApart &&
                        std::abs(lost[0] - lost[1]) > 2.5;
  return most > kMostContaminated || is_apart;
}

std::set<int> groups_with_baselines(const Record& record, Side side, const std::string& workload,
                                    const Contamination& contamination) {
  std::set<int> groups;
  for (const Block& block : record.blocks) {
    const bool is_baseline = block.arm == "baseline" && !block.is_verify && !block.passes.empty();
    if (!is_baseline || block.place.side != side || block.place.workload != workload) continue;
    if (!contamination.drops(block.place.stint)) groups.insert(block.place.group);
  }
  return groups;
}

}  // namespace

std::set<int> common_groups(const Record& record, const std::string& workload,
                            const Contamination& contamination) {
  const std::set<int> a = groups_with_baselines(record, Side::kA, workload, contamination);
  const std::set<int> b = groups_with_baselines(record, Side::kB, workload, contamination);
  std::set<int> common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(common, common.end()));
  return common;
}

Contamination contamination_of(const Record& record, const std::string& workload) {
  const std::array<Stints, 2> sides{stints_of(record, Side::kA, workload),
                                    stints_of(record, Side::kB, workload)};
  Found seen;
  for (const Stints& stints : sides) look_at(stints, seen);
  Contamination found;
  found.stints = seen.waited;
  found.stints.insert(seen.stolen.begin(), seen.stolen.end());
  found.watched = static_cast<int>(seen.watched.size());
  found.waited = static_cast<int>(seen.waited.size());
  found.stolen = static_cast<int>(found.stints.size() - seen.waited.size());
  for (size_t s = 0; s < 2; ++s) {
    const auto lost = std::count_if(sides[s].begin(), sides[s].end(),
                                    [&](const auto& entry) { return found.stints.count(entry.first) > 0; });
    if (!sides[s].empty())
      found.side_ratio[s] = static_cast<double>(lost) / static_cast<double>(sides[s].size());
  }
  found.is_too_much = is_too_much(found, sides);
  const size_t fewest = std::min<size_t>(kFewestForInterval, common_groups(record, workload).size());
  found.leaves_too_little = common_groups(record, workload, found).size() < fewest;
  return found;
}

}  // namespace opledger::core::detail
