// Runs a shell command once and reads one figure from it: how long it took, or what it printed.
#pragma once

#include <optional>
#include <regex>
#include <string>
#include <utility>

#include "core/base/result.h"
#include "platform/clock.h"
#include "platform/interrupt.h"

namespace opledger::judge {

struct CommandRun {
  double figure = 0;     ///< above 0; seconds where no expression asks for another
  double elapsed_s = 0;  ///< from the start of the shell to its end
};

class CommandRunner {
 public:
  /// `figure`: its first group in the output (stdout and stderr) is the figure, the last match of several;
  /// empty: elapsed time. Bad input: an expression that cannot be read or has no group. `log_path` holds the
  /// newest run's output.
  static Result<CommandRunner> make(const std::string& figure, std::string log_path, int64_t limit_ns);

  /// Failure when the command ends with other than 0, outlasts the limit, or prints no such figure; the
  /// message names the command and its output's end.
  Result<CommandRun> run(const std::string& command, const platform::Clock& clock,
                         const platform::Interrupt& interrupt) const;

 private:
  CommandRunner(std::optional<std::regex> figure, std::string log_path, int64_t limit_ns)
      : figure_(std::move(figure)), log_path_(std::move(log_path)), limit_ns_(limit_ns) {}
  [[nodiscard]] std::optional<double> printed_figure() const;

  std::optional<std::regex> figure_;
  std::string log_path_;
  int64_t limit_ns_;
};

}  // namespace opledger::judge
