// Measures two commands in turns until a planned look tells them apart, or finds them the same, or the budget
// is spent.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "core/base/result.h"
#include "judge/command.h"
#include "judge/pairs.h"
#include "judge/verdict.h"
#include "platform/clock.h"
#include "platform/interrupt.h"

namespace opledger::judge {

struct JudgeOptions {
  Question question;
  double min_effect_ratio = 0.005;
  double budget_s = 180;
  std::optional<std::string> record_path;
  std::string log_path;  ///< of the newest run's output
  int64_t run_limit_ns = 600'000'000'000;
};

struct JudgeOutcome {
  Judgement judgement;     ///< of the last look
  int pairs = 0;           ///< those of earlier runs of this record among them
  int looks = 0;           ///< planned looks that were reached
  double elapsed_s = 0;    ///< of all pairs
  std::string end_reason;  ///< verdict, looks, budget or interrupted
};

/// What samples (log(time of a / time of b), one per pair) say at the newest planned look that they reach: an
/// interval looked at elsewhere would not be worth its 95%. `end_reason` is "verdict" or "looks" where that
/// ends the judgement, and empty where it goes on.
JudgeOutcome outcome_of(std::span<const double> log_ratios, double min_effect_ratio);

/// Called before every pair.
using Watch = std::function<void(const JudgeOutcome& so_far, int next_look)>;

/// Runs a and b alternately, which is first changing from pair to pair (A B, B A). One pair is run before and
/// forgotten: files are not in the page cache yet. What was measured is in the record whatever happens.
Result<JudgeOutcome> run_judge(const JudgeOptions& options, const platform::Clock& clock,
                               const platform::Interrupt& interrupt, const Watch& watch);

}  // namespace opledger::judge
