#include "engines/ggml/channel.h"

#include <array>
#include <cerrno>
#include <sys/socket.h>
#include <unistd.h>

namespace opledger::ggml {

std::optional<std::string> Channel::read_line() {
  size_t searched = 0;
  for (;;) {
    const size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    searched = buffer_.size();
    std::array<char, 65536> chunk;
    const ssize_t got = read(descriptor_, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    buffer_.append(chunk.data(), static_cast<size_t>(got));
  }
}

bool Channel::send(const nlohmann::json& message) {
  const std::string line = message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
  size_t sent = 0;
  while (sent < line.size()) {
    const ssize_t put = ::send(descriptor_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    sent += static_cast<size_t>(put);
  }
  return true;
}

}  // namespace opledger::ggml
