// A child process that cannot outlive its parent: own process group, killed by the kernel when the parent
// dies, one socket to the parent, stdout and stderr in a log file. Knows nothing of what is said over the
// socket.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "core/base/result.h"
#include "platform/clock.h"
#include "platform/unique_fd.h"

namespace opledger::platform {

/// How a process ended.
struct ProcessEnd {
  bool by_signal = false;
  int code = 0;  ///< the exit status, or the signal's number

  /// "exited with 3" or "was killed by signal 9 (Killed)".
  [[nodiscard]] std::string describe() const;
};

struct ChildOptions {
  std::string program;                          ///< path of the executable
  std::vector<std::string> arguments;           ///< without argv[0]
  std::vector<std::string> environment;         ///< "NAME=value", added to ours or replacing it
  std::string log_path;                         ///< truncated; receives stdout and stderr
  std::string socket_variable = "OPLEDGER_FD";  ///< names the child's end of the socket
};

/// Owns the process: destroying it kills the whole group and reaps it. Must be started by a thread that lives
/// as long as the child should (the kernel ties the child's life to that thread). Not safe for concurrent
/// use.
class Child {
 public:
  /// Environment error when the program cannot be executed or the log cannot be written.
  static Result<Child> start(const ChildOptions& options);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  [[nodiscard]] pid_t id() const { return id_; }
  /// Our end of the socket; to be taken once.
  UniqueFd take_socket() { return std::move(socket_); }

  /// Stops the whole group and returns once it is stopped (or has ended: poll_end says so). A child that the
  /// kernel keeps from stopping for 5 s stops when it may.
  void pause();
  void resume();
  [[nodiscard]] bool is_paused() const { return paused_; }

  /// Empty while it runs. Reaps it when it has ended.
  std::optional<ProcessEnd> poll_end();
  /// Waits until `deadline_ns`; empty when it still runs then.
  std::optional<ProcessEnd> wait_end(int64_t deadline_ns, const Clock& clock);
  /// Kills the whole group, reaps the child and says how it ended.
  ProcessEnd kill_group();

 private:
  Child(pid_t id, UniqueFd socket);
  void note_end(int wait_status);
  /// Waits 50 ms: false when the child has neither stopped nor ended by then.
  bool wait_stopped();

  pid_t id_ = -1;
  bool paused_ = false;
  UniqueFd socket_;
  std::optional<ProcessEnd> end_;
};

/// The last lines of a log as one line of at most `max_chars` printable characters, pieces joined by " | ".
/// Empty when there is no log or nothing in it.
std::string log_tail(const std::string& path, size_t max_chars);

}  // namespace opledger::platform
