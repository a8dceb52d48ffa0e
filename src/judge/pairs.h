// Pairs of figures on disk, one JSON line each, so that an interrupted judgement goes on where it stopped and
// whoever doubts a verdict can look at what it was made from.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "judge/question.h"

namespace opledger::judge {

/// Figures as the commands gave them: seconds where elapsed time is the figure.
struct Pair {
  double a = 0;
  double b = 0;
  double elapsed_s = 0;  ///< of both runs together

  /// log(time of a / time of b); a rate counts as one over its time.
  [[nodiscard]] double log_ratio(bool is_higher_better) const;
};

/// A record of pairs: the question, then pairs in the order they were measured.
class PairLog {
 public:
  /// Without a path nothing is kept. Bad input: a file that is no such record, or of another question.
  /// Environment: one that cannot be written.
  static Result<PairLog> open(const std::optional<std::string>& path, const Question& question);

  /// Those of earlier runs among them.
  [[nodiscard]] const std::vector<Pair>& pairs() const { return pairs_; }
  Status append(const Pair& pair);

 private:
  explicit PairLog(std::optional<std::string> path) : path_(std::move(path)) {}
  Status write_line(const std::string& line);

  std::optional<std::string> path_;
  std::vector<Pair> pairs_;
};

}  // namespace opledger::judge
