// JSON-RPC 2.0 as docs/protocol.md uses it; nothing of a reply is believed before its type is looked at.
#include "session/protocol_client.h"

#include <fmt/format.h>
#include <utility>

namespace opledger::session {
namespace {

using nlohmann::json;
using platform::ChannelState;

/// The start of what an engine said, fit for one line of an error.
std::string excerpt(const std::string& line) {
  std::string text = line.substr(0, 80);
  for (char& c : text) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return line.size() > 80 ? text + "..." : text;
}

Error stated_error(const std::string& name, const std::string& method, const json& error) {
  const json message = error.value("message", json());
  std::string text = message.is_string() ? message.get<std::string>() : "an error without a message";
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  const json data = error.value("data", json::object());
  const json kind = data.is_object() ? data.value("kind", json()) : json();
  text = fmt::format("{}: {}", name, text);
  if (kind == "bad_input") return Error::bad_input(text);
  if (kind == "environment") return Error::environment(text);
  return Error::failure(fmt::format("{} (in {})", text, method));
}

}  // namespace

ProtocolClient::ProtocolClient(std::string name, platform::LineChannel channel, const platform::Clock& clock)
    : name_(std::move(name)), channel_(std::move(channel)), clock_(&clock) {}

Error ProtocolClient::gone(std::string what) {
  last_failure_ = CallFailure::kGone;
  return Error::failure(fmt::format("{} {}", name_, what));
}

Error ProtocolClient::channel_error(ChannelState state, const std::string& method, int64_t limit_ns) {
  switch (state) {
    case ChannelState::kInterrupted:
      last_failure_ = CallFailure::kGone;
      return {Error::Kind::kInterrupted, "interrupted"};
    case ChannelState::kTimedOut:
      return gone(fmt::format("did not answer {} within {} s (see --engine-timeout)", method,
                              static_cast<double>(limit_ns) / 1e9));
    case ChannelState::kTooLong:
      return gone(fmt::format("floods: its answer to {} is longer than any message may be", method));
    default:
      return gone(fmt::format("closed its socket during {}", method));
  }
}

Result<json> ProtocolClient::take_reply(const json& message, int64_t id, const std::string& method) {
  const bool has_result = message.contains("result");
  const bool has_error = message.contains("error");
  const json reply_id = message.value("id", json());
  if (reply_id != id || has_result == has_error) {
    return gone(fmt::format("answered {} with a message that is no reply to it: {}", method,
                            excerpt(message.dump())));
  }
  if (has_result) return message["result"];
  last_failure_ = CallFailure::kRefused;
  if (!message["error"].is_object())
    return gone(fmt::format("answered {} with an error that is no object", method));
  return stated_error(name_, method, message["error"]);
}

Result<json> ProtocolClient::call(const std::string& method, json params, int64_t limit_ns, size_t max_blocks,
                                  const BlockHandler& on_block) {
  last_failure_ = CallFailure::kNone;
  const int64_t id = next_id_++;
  const json request{{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}};
  int64_t deadline_ns = clock_->now_ns() + limit_ns;
  const ChannelState sent = channel_.write_line(request.dump(), deadline_ns);
  if (sent != ChannelState::kOk) return channel_error(sent, method, limit_ns);
  size_t blocks = 0;
  while (true) {
    const platform::ReadLine read = channel_.read_line(deadline_ns);
    if (read.state != ChannelState::kOk) return channel_error(read.state, method, limit_ns);
    const json message = json::parse(read.line, nullptr, /*allow_exceptions=*/false);
    if (!message.is_object() || message.value("jsonrpc", json()) != "2.0") {
      return gone(
          fmt::format("answered {} with a line that is no JSON-RPC message: {}", method, excerpt(read.line)));
    }
    if (!message.contains("method")) return take_reply(message, id, method);
    if (message["method"] != "block" || message.contains("id") || !message.contains("params")) {
      return gone(fmt::format("sent a notification that the protocol does not know: {}", excerpt(read.line)));
    }
    if (++blocks > max_blocks) {
      return gone(fmt::format("sent more block notifications than {} asked for ({})", method, max_blocks));
    }
    if (on_block) {
      if (Status status = on_block(message["params"]); !status) {
        last_failure_ = CallFailure::kGone;
        return status.error();
      }
    }
    deadline_ns = clock_->now_ns() + limit_ns;
  }
}

}  // namespace opledger::session
