// The core's end of the engine protocol (docs/protocol.md): one request at a time over a line channel, every
// reply checked, every way an engine can misbehave turned into one Error. Starts no process.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "platform/line_channel.h"

namespace opledger::session {

/// A line longer than this is a flood: the largest honest message (logits of 32 rows over 256k tokens) takes
/// 45 MB.
inline constexpr size_t kMaxMessageBytes = size_t{256} << 20;

/// Receives the params of a `block` notification. An Error stops the request.
using BlockHandler = std::function<Status(const nlohmann::json&)>;

/// What a request may bring before its reply.
struct Expected {
  size_t blocks = 0;
  size_t holds = 0;
  BlockHandler on_block;  ///< must outlive the request
};

/// Why a request failed, for callers that may go on: an engine that is gone needs a restart, one that refused
/// does not.
enum class CallFailure { kNone, kRefused, kGone };

class ProtocolClient {
 public:
  /// `name` is how messages call the engine. `clock` must outlive the client.
  ProtocolClient(std::string name, platform::LineChannel channel, const platform::Clock& clock);

  /// Sends a request; `advance` brings its reply. The limit is for the reply, and starts again with every
  /// notification; more notifications than expected are a flood.
  Status begin(const std::string& method, nlohmann::json params, int64_t limit_ns, Expected expected = {});
  /// The `result` of the request that was begun; nothing when the engine holds instead, until the next
  /// `advance` tells it to continue. Errors: those that the engine states, with their kind; kInterrupted;
  /// else kFailure saying what the engine did (died, hung, sent something that is no reply).
  Result<std::optional<nlohmann::json>> advance();
  /// Of the last call.
  [[nodiscard]] CallFailure last_failure() const { return last_failure_; }
  void close() { channel_.close(); }

 private:
  Status send(const nlohmann::json& message, int64_t deadline_ns);
  Result<nlohmann::json> read_message(int64_t deadline_ns);
  Result<nlohmann::json> take_reply(const nlohmann::json& message);
  Status take_block(const nlohmann::json& message);
  Error gone(std::string what);
  Error channel_error(platform::ChannelState state);

  std::string name_;
  platform::LineChannel channel_;
  const platform::Clock* clock_;
  int64_t id_ = 0;  ///< of the last request
  std::string method_;
  int64_t limit_ns_ = 0;
  Expected expected_;
  size_t blocks_ = 0, holds_ = 0;  ///< that it brought
  bool is_held_ = false;
  CallFailure last_failure_ = CallFailure::kNone;
};

}  // namespace opledger::session
