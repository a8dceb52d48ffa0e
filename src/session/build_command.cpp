// Starts build tools with posix_spawn: same process group, so that Ctrl-C ends them with us.
#include "session/build_command.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <spawn.h>
#include <sstream>
#include <string_view>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace opledger::session {
namespace {

// The child's environment: ours, with `changes` in front (getenv takes the first of two).
std::vector<char*> environment_with(const std::vector<std::string>& changes) {
  std::vector<char*> variables;
  variables.reserve(changes.size());
  for (const std::string& change : changes) variables.push_back(const_cast<char*>(change.c_str()));
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view inherited = *variable;
    bool is_replaced = false;
    for (const std::string& change : changes) {
      const std::string_view name = std::string_view(change).substr(0, change.find('=') + 1);
      is_replaced = is_replaced || inherited.substr(0, name.size()) == name;
    }
    if (!is_replaced) variables.push_back(*variable);
  }
  variables.push_back(nullptr);
  return variables;
}

Result<pid_t> spawn_logged(const BuildCommand& command) {
  std::vector<char*> argv;
  argv.reserve(command.argv.size() + 1);
  for (const std::string& word : command.argv) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  std::vector<char*> variables = environment_with(command.environment);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, command.log.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = -1;
  const int failed = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    return Error::environment(
        fmt::format("cannot run {} with its log in {}: {}: is it installed, and the log writable?",
                    command.argv[0], command.log.string(), std::strerror(failed)));
  }
  return child;
}

std::string last_line_of(const std::filesystem::path& log) {
  constexpr std::streamoff kTail = 512;
  std::ifstream in(log, std::ios::binary | std::ios::ate);
  const std::streamoff size = in.tellg();
  if (!in || size <= 0) return {};
  in.seekg(size > kTail ? size - kTail : 0);
  std::string line;
  std::string last;
  while (std::getline(in, line)) {
    if (!line.empty()) last = line;
  }
  return last;
}

bool states_error(std::string_view line) {
  for (const std::string_view mark :
       {" error: ", "error: ", "CMake Error", "undefined reference to", "*** [", "No space left"}) {
    if (line.find(mark) != std::string_view::npos) return true;
  }
  return false;
}

std::string trimmed(const std::string& line) {
  const std::size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string::npos) return {};
  return line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
}

}  // namespace

Result<int> run_build_command(const BuildCommand& command) {
  const Result<pid_t> child = spawn_logged(command);
  if (!child) return child.error();
  int status = 0;
  for (int ticks = 1;; ++ticks) {
    const pid_t ended = waitpid(*child, &status, WNOHANG);
    if (ended == *child) break;
    if (ended < 0 && errno != EINTR) {
      return Error::environment(
          fmt::format("waiting for {} failed: {}", command.argv[0], std::strerror(errno)));
    }
    constexpr int kTicksPerReport = 20;
    if (command.on_line && ticks % kTicksPerReport == 0) command.on_line(last_line_of(command.log));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  constexpr int kSignalBase = 128;
  return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalBase + WTERMSIG(status);
}

std::optional<std::string> first_build_error(const std::string& log_text) {
  std::istringstream in(log_text);
  std::string line;
  while (std::getline(in, line)) {
    if (!states_error(line)) continue;
    std::string found = trimmed(line);
    // CMake puts the place on one line and the message, indented, on the next that is not empty.
    while (found.rfind("CMake Error", 0) == 0 && found.back() == ':' && std::getline(in, line)) {
      if (!trimmed(line).empty()) return found + ' ' + trimmed(line);
    }
    return found;
  }
  return std::nullopt;
}

std::string read_log(const std::filesystem::path& log) {
  std::ifstream in(log, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace opledger::session
