// The core's end of the engine protocol (docs/protocol.md): one request at a time over a line channel, every
// reply checked, every way an engine can misbehave turned into one Error. Starts no process and keeps no
// state of a run.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/result.h"
#include "platform/line_channel.h"

namespace opledger::session {

/// A line longer than this is a flood: the largest honest message (logits of 32 rows over 256k tokens) takes
/// 45 MB.
inline constexpr size_t kMaxMessageBytes = size_t{256} << 20;

/// Receives the params of a `block` notification. An Error stops the request.
using BlockHandler = std::function<Status(const nlohmann::json&)>;

/// Why a request failed, for callers that may go on: an engine that is gone needs a restart, one that refused
/// does not.
enum class CallFailure { kNone, kRefused, kGone };

class ProtocolClient {
 public:
  /// `name` is how messages call the engine. `clock` must outlive the client.
  ProtocolClient(std::string name, platform::LineChannel channel, const platform::Clock& clock);

  /// The `result` of one request. The limit is for the reply, and starts again with every notification; more
  /// than `max_blocks` notifications is a flood. Errors: those that the engine states, with their kind;
  /// kInterrupted; else kFailure saying what the engine did (died, hung, sent something that is no reply).
  Result<nlohmann::json> call(const std::string& method, nlohmann::json params, int64_t limit_ns,
                              size_t max_blocks = 0, const BlockHandler& on_block = {});
  /// Of the last call.
  [[nodiscard]] CallFailure last_failure() const { return last_failure_; }
  void close() { channel_.close(); }

 private:
  Result<nlohmann::json> take_reply(const nlohmann::json& message, int64_t id, const std::string& method);
  Error gone(std::string what);
  Error channel_error(platform::ChannelState state, const std::string& method, int64_t limit_ns);

  std::string name_;
  platform::LineChannel channel_;
  const platform::Clock* clock_;
  int64_t next_id_ = 1;
  CallFailure last_failure_ = CallFailure::kNone;
};

}  // namespace opledger::session
