// Ctrl-C in two steps: the first asks the session to stop and keep what it has, the second ends the program
// at once with exit code 130, after killing every engine group. Refuses to do work in the handler beyond
// that.
#pragma once

#include <sys/types.h>

namespace opledger::platform {

/// While one lives, SIGINT and SIGTERM are handled as above. One at a time per process (a second is our bug).
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// True once a signal has arrived.
  [[nodiscard]] bool is_requested() const;
  /// Becomes readable with the first signal and stays so: for poll.
  [[nodiscard]] int fd() const;
};

/// Process groups that a second signal, or the end of the program, must not leave behind. Async-signal-safe
/// bookkeeping; at most 64 at a time, further ones are not covered (the kernel still kills them with their
/// parent).
void protect_group(pid_t group);
void forget_group(pid_t group);

}  // namespace opledger::platform
