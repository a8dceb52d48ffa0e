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

Error ProtocolClient::channel_error(ChannelState state) {
  switch (state) {
    case ChannelState::kInterrupted:
      last_failure_ = CallFailure::kGone;
      return {Error::Kind::kInterrupted, "interrupted"};
    case ChannelState::kTimedOut:
      return gone(fmt::format("did not answer {} within {} s (see --engine-timeout)", method_,
                              static_cast<double>(limit_ns_) / 1e9));
    case ChannelState::kTooLong:
      return gone(fmt::format("floods: its answer to {} is longer than any message may be", method_));
    default:
      return gone(fmt::format("closed its socket during {}", method_));
  }
}

Result<json> ProtocolClient::take_reply(const json& message) {
  const bool has_result = message.contains("result");
  const bool has_error = message.contains("error");
  const json reply_id = message.value("id", json());
  if (reply_id != id_ || has_result == has_error) {
    return gone(fmt::format("answered {} with a message that is no reply to it: {}", method_,
                            excerpt(message.dump())));
  }
  if (has_result) return message["result"];
  last_failure_ = CallFailure::kRefused;
  if (!message["error"].is_object())
    return gone(fmt::format("answered {} with an error that is no object", method_));
  return stated_error(name_, method_, message["error"]);
}

Status ProtocolClient::take_block(const json& message) {
  if (++blocks_ > expected_.blocks) {
    return gone(
        fmt::format("sent more block notifications than {} asked for ({})", method_, expected_.blocks));
  }
  if (!expected_.on_block) return {};
  Status status = expected_.on_block(message["params"]);
  if (!status) last_failure_ = CallFailure::kGone;
  return status;
}

Status ProtocolClient::send(const json& message, int64_t deadline_ns) {
  const ChannelState sent = channel_.write_line(message.dump(), deadline_ns);
  return sent == ChannelState::kOk ? Status{} : Status{channel_error(sent)};
}

Result<json> ProtocolClient::read_message(int64_t deadline_ns) {
  const platform::ReadLine read = channel_.read_line(deadline_ns);
  if (read.state != ChannelState::kOk) return channel_error(read.state);
  json message = json::parse(read.line, nullptr, /*allow_exceptions=*/false);
  if (!message.is_object() || message.value("jsonrpc", json()) != "2.0") {
    return gone(
        fmt::format("answered {} with a line that is no JSON-RPC message: {}", method_, excerpt(read.line)));
  }
  const bool is_known =
      !message.contains("method") || message["method"] == "block" || message["method"] == "hold";
  if (is_known && (!message.contains("method") || (!message.contains("id") && message.contains("params"))))
    return message;
  return gone(fmt::format("sent a notification that the protocol does not know: {}", excerpt(read.line)));
}

Status ProtocolClient::begin(const std::string& method, json params, int64_t limit_ns, Expected expected) {
  last_failure_ = CallFailure::kNone;
  ++id_;
  method_ = method;
  limit_ns_ = limit_ns;
  expected_ = std::move(expected);
  blocks_ = holds_ = 0;
  is_held_ = false;
  const json request{{"jsonrpc", "2.0"}, {"id", id_}, {"method", method}, {"params", std::move(params)}};
  return send(request, clock_->now_ns() + limit_ns_);
}

Result<std::optional<json>> ProtocolClient::advance() {
  int64_t deadline_ns = clock_->now_ns() + limit_ns_;
  if (is_held_) {
    const json go_on{{"jsonrpc", "2.0"}, {"method", "continue"}, {"params", json::object()}};
    if (Status status = send(go_on, deadline_ns); !status) return status.error();
    is_held_ = false;
  }
  while (true) {
    const Result<json> message = read_message(deadline_ns);
    if (!message) return message.error();
    if (!message->contains("method")) {
      Result<json> reply = take_reply(*message);
      return reply ? Result<std::optional<json>>(std::optional(std::move(*reply))) : reply.error();
    }
    if ((*message)["method"] == "hold") {
      if (++holds_ > expected_.holds)
        return gone(fmt::format("holds more often than {} asked for ({})", method_, expected_.holds));
      is_held_ = true;
      return std::optional<json>();
    }
    if (Status status = take_block(*message); !status) return status.error();
    deadline_ns = clock_->now_ns() + limit_ns_;
  }
}

}  // namespace opledger::session
