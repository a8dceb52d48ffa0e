// Runs a build tool to its end with its output in a log, and finds the one line of that log that says what
// went wrong. Not for engines: those are driven through the protocol and never share our process group.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace opledger::session {

struct BuildCommand {
  std::vector<std::string> argv;         ///< argv[0] is looked up on PATH
  std::filesystem::path log;             ///< appended to; its folder must exist
  std::vector<std::string> environment;  ///< "NAME=value", over the inherited environment
  std::function<void(const std::string&)>
      on_line;  ///< may be empty; called about once a second with the log's last line
};

/// Exit status of the command (128 + signal when one ended it). An Error when it could not be started or
/// its log not written.
Result<int> run_build_command(const BuildCommand& command);

/// The first line of a build log that states an error, on one line; for CMake, with the message that
/// follows. Empty when the log holds none.
std::optional<std::string> first_build_error(const std::string& log_text);

/// The whole log, or an empty text when there is none.
std::string read_log(const std::filesystem::path& log);

}  // namespace opledger::session
