// How fast the machine was while a pass was measured, and how long the pass was against a baseline at that
// very moment. Internal to the analysis.
#pragma once

#include <map>
#include <vector>

#include "core/record/record.h"

namespace opledger::core::detail {

struct PassSpeed {
  double baseline_ns = 0;                  ///< graph time that a baseline pass would have taken then
  double relative_ratio = 0;               ///< the pass's graph time over that, disturbances left out
  std::vector<double> step_baseline_ns{};  ///< the same step by step; empty where passes do not tell steps
};

/// The geometric mean of what stays after the lowest and highest fifth are cut (the median where one is 0),
/// of one step or more. So what does not change with the machine's speed is told right by (its share of each
/// step) times (the steps), and so is what changes with it: a mean of shares times a median of steps told
/// spins of fixed length 1.3 to 2.4 times too long on a machine that flipped between 16 and 60 ms a token.
double middle_of_steps(const std::vector<double>& steps);

/// One entry per pass of each block beside which there are baselines. Baselines themselves have some only
/// where other arms of their turn tell their steps.
using Speeds = std::map<const Block*, std::vector<PassSpeed>>;

/// `blocks`: timed ones of one engine and workload, by sequence. Where the arms of a turn tell their steps,
/// they are compared step by step; elsewhere a pass is compared with the baselines on both sides of its
/// block.
Speeds speeds_of(const std::vector<const Block*>& blocks);

}  // namespace opledger::core::detail
