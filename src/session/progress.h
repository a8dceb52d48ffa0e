// Tells a person what the session does now: one line that rewrites itself on a terminal, plain lines
// elsewhere. Writes to stderr only, so that a ledger on stdout stays clean.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "platform/clock.h"

namespace opledger::session {

class Progress {
 public:
  /// `clock` must outlive it.
  Progress(bool is_terminal, const platform::Clock& clock) : is_terminal_(is_terminal), clock_(&clock) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// A line that stays.
  void say(const std::string& line);
  /// What goes on now. Elsewhere than on a terminal only changes of `what` are printed.
  void show(const std::string& what);
  /// From now on `show` adds how much of this time is left.
  void start_countdown(int64_t end_ns) { end_ns_ = end_ns; }
  /// Takes the rewriting line away.
  void clear();

 private:
  bool is_terminal_;
  const platform::Clock* clock_;
  std::optional<int64_t> end_ns_;
  std::string shown_;
};

/// "3.2 s", "2 min 5 s".
std::string duration_text(double seconds);

}  // namespace opledger::session
