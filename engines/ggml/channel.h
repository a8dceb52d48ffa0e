// JSON-RPC 2.0 lines over the socket that the parent passed (OPLEDGER_FD).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace opledger::ggml {

class Channel {
 public:
  /// `descriptor` is not owned.
  explicit Channel(int descriptor) : descriptor_(descriptor) {}
  /// The next line; nothing when the parent closed the socket.
  std::optional<std::string> read_line();
  /// False when the parent is gone.
  bool send(const nlohmann::json& message);

 private:
  int descriptor_;
  std::string buffer_;
};

}  // namespace opledger::ggml
