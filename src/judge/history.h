// Verdicts kept over time: whether `faster` meant anything is seen when the same two commands are judged
// again.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "judge/judge.h"

namespace opledger::judge {

struct History {
  int verdicts = 0;   ///< of the same question
  int faster = 0;     ///< of these
  int confirmed = 0;  ///< `faster` whose next verdict other than `cannot tell` was `faster` too
  int refuted = 0;    ///< or was not
};

/// What the file (JSON Lines; an absent one is empty) says of this question. Bad input: a line that is no
/// verdict.
Result<History> read_history(const std::string& path, const Question& question);

/// Fails (environment) where the file cannot be written: to be asked before anything is measured.
Status check_history(const std::string& path);

/// Adds a verdict. `when`: RFC 3339. Environment: a file that cannot be written.
Status add_to_history(const std::string& path, const Question& question, const JudgeOutcome& outcome,
                      const std::string& when);

}  // namespace opledger::judge
