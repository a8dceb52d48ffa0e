// Lines over a stream socket, with a deadline for every wait and a limit for every line, so that neither a
// peer that hangs nor one that floods can take the core with it. Knows nothing of what the lines say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "platform/clock.h"
#include "platform/unique_fd.h"

namespace opledger::platform {

enum class ChannelState {
  kOk,
  kClosed,       ///< the peer closed its end (or died)
  kTimedOut,     ///< the deadline passed
  kTooLong,      ///< more than the limit without an end of line
  kInterrupted,  ///< the interrupt descriptor became readable
};

struct ReadLine {
  ChannelState state = ChannelState::kClosed;
  std::string line;  ///< without its end of line; empty unless state is kOk
};

/// Not safe for concurrent use. After any state but kOk, kTimedOut and kInterrupted it stays unusable.
class LineChannel {
 public:
  /// `interrupt_fd` may be -1. `clock` must outlive the channel.
  LineChannel(UniqueFd socket, size_t max_line_bytes, const Clock& clock, int interrupt_fd);

  /// Waits for one whole line until `deadline_ns` on the clock.
  ReadLine read_line(int64_t deadline_ns);
  /// Sends `line` and an end of line. A peer that does not read is kTimedOut.
  ChannelState write_line(std::string_view line, int64_t deadline_ns);
  /// Closes our end: a well-behaved peer then exits.
  void close() { socket_.reset(); }

 private:
  ChannelState wait_for(short events, int64_t deadline_ns) const;

  UniqueFd socket_;
  size_t max_line_bytes_;
  const Clock* clock_;
  int interrupt_fd_;
  std::string buffer_;
  size_t scanned_ = 0;  ///< bytes of buffer_ known to hold no end of line
};

}  // namespace opledger::platform
