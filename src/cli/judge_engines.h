// Judges two engines: launch groups of baselines alone, looked at like pairs of commands.
#pragma once

#include <string>
#include <vector>

#include "cli/bench_flags.h"
#include "core/base/result.h"
#include "judge/judge.h"
#include "session/progress.h"

namespace opledger::cli {

/// One sample per launch group: the ratio of both engines' wall times, from steps side by side. One workload
/// (16 tokens of decode at depth 64 unless told). Errors as `compare` gives them.
Result<judge::JudgeOutcome> judge_engines(BenchFlags& parsed, const std::vector<std::string>& arguments,
                                          double min_effect_ratio, session::Progress& progress);

}  // namespace opledger::cli
