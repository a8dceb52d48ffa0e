// Non-blocking sends and receives around poll; the buffer is scanned once, however many pieces a line came
// in.
#include "platform/line_channel.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <poll.h>
#include <sys/socket.h>
#include <utility>

namespace opledger::platform {

LineChannel::LineChannel(UniqueFd socket, size_t max_line_bytes, const Clock& clock, int interrupt_fd)
    : socket_(std::move(socket)),
      max_line_bytes_(max_line_bytes),
      clock_(&clock),
      interrupt_fd_(interrupt_fd) {}

ChannelState LineChannel::wait_for(short events, int64_t deadline_ns) const {
  while (true) {
    std::array<pollfd, 2> fds{pollfd{socket_.fd(), events, 0}, pollfd{interrupt_fd_, POLLIN, 0}};
    const int64_t left_ns = deadline_ns - clock_->now_ns();
    // Rounded up: a wait of 0.4 ms must not turn into a spin of zero-length polls.
    const int64_t left_ms = std::clamp<int64_t>((left_ns + 999'999) / 1'000'000, 0, 3'600'000);
    const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(left_ms));
    if (ready < 0 && errno != EINTR) return ChannelState::kClosed;
    if (ready > 0 && fds[1].revents != 0) return ChannelState::kInterrupted;
    if (ready > 0 && fds[0].revents != 0) return ChannelState::kOk;
    if (ready == 0 && clock_->now_ns() >= deadline_ns) return ChannelState::kTimedOut;
  }
}

ReadLine LineChannel::read_line(int64_t deadline_ns) {
  if (!socket_.is_open()) return {ChannelState::kClosed, {}};
  while (true) {
    const size_t end = buffer_.find('\n', scanned_);
    if (end != std::string::npos) {
      ReadLine result{ChannelState::kOk, buffer_.substr(0, end)};
      buffer_.erase(0, end + 1);
      scanned_ = 0;
      return result;
    }
    scanned_ = buffer_.size();
    if (buffer_.size() > max_line_bytes_) return {ChannelState::kTooLong, {}};
    // Also while data keeps coming: a line without an end must not outlast its deadline.
    if (clock_->now_ns() > deadline_ns) return {ChannelState::kTimedOut, {}};
    if (const ChannelState state = wait_for(POLLIN, deadline_ns); state != ChannelState::kOk)
      return {state, {}};
    std::array<char, 65536> piece;  // NOLINT: filled by recv
    const ssize_t got = ::recv(socket_.fd(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (got == 0) return {ChannelState::kClosed, {}};
    if (got < 0 && errno != EAGAIN && errno != EINTR) return {ChannelState::kClosed, {}};
    if (got > 0) buffer_.append(piece.data(), static_cast<size_t>(got));
  }
}

ChannelState LineChannel::write_line(std::string_view line, int64_t deadline_ns) {
  if (!socket_.is_open()) return ChannelState::kClosed;
  std::string message(line);
  message += '\n';
  size_t sent = 0;
  while (sent < message.size()) {
    if (const ChannelState state = wait_for(POLLOUT, deadline_ns); state != ChannelState::kOk) return state;
    const ssize_t now =
        ::send(socket_.fd(), message.data() + sent, message.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (now < 0 && errno != EAGAIN && errno != EINTR) return ChannelState::kClosed;
    if (now > 0) sent += static_cast<size_t>(now);
  }
  return ChannelState::kOk;
}

}  // namespace opledger::platform
