// A running engine: its process, its log and the protocol over its socket, as one thing that dies with us.
// Knows how to find and start an engine and to talk to it; what is asked, and when, is decided elsewhere.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "platform/child.h"
#include "platform/clock.h"
#include "session/engine_spec.h"
#include "session/protocol_client.h"

namespace opledger::session {

inline constexpr const char* kProtocolVersion = "2";

/// What it takes to start an engine's process.
struct EngineProgram {
  std::string name;
  std::string program;
  std::vector<std::string> environment;  ///< "NAME=value"
};

/// Looks a spec's engine up in the registry (or takes its exec: path). Bad input for an unknown engine, one
/// whose libraries changed since it was added, and a program that is no executable file.
Result<EngineProgram> find_engine_program(const EngineSpec& spec);

/// What every engine of a session shares.
struct EngineContext {
  const platform::Clock* clock = nullptr;
  int interrupt_fd = -1;
  int64_t request_limit_ns =
      600'000'000'000;  ///< how long one request, or one block of a measurement, may take
  std::string log_folder;
  size_t max_message_bytes = kMaxMessageBytes;
};

/// Owns the process; destroying it kills the process group. The log is deleted when the engine ended well.
class Engine {
 public:
  /// Starts the process. Says nothing to it yet.
  static Result<Engine> start(const EngineProgram& program, const EngineContext& context);
  Engine(Engine&&) = default;
  Engine& operator=(Engine&&) = default;
  ~Engine();

  /// Starts the process and sends `initialize`; `reply` receives its result. Refused when versions differ.
  static Result<Engine> start_initialized(const EngineProgram& program, const EngineContext& context,
                                          nlohmann::json& reply);

  /// The reply to one request. As ProtocolClient; a kFailure also says how the process ended, and its log's
  /// tail and path. The engine goes on at once wherever it holds.
  Result<nlohmann::json> call(const std::string& method, nlohmann::json params, Expected expected = {});
  /// The same in parts, for engines that change places: `advance` returns nothing while the engine holds.
  Status begin(const std::string& method, nlohmann::json params, Expected expected = {});
  Result<std::optional<nlohmann::json>> advance();
  /// True when the last call ended because the engine is gone or beyond use (not merely refused).
  [[nodiscard]] bool is_gone() const { return client_->last_failure() == CallFailure::kGone; }

  /// Stops and wakes the whole process group, so that no spinning thread shares the machine with a
  /// measurement.
  void pause() { child_->pause(); }
  void resume() { child_->resume(); }

  /// Asks it to end, and waits up to 10 s. A failure when it ends otherwise than with status 0.
  Status shutdown();
  /// Closes our end of the socket and waits up to `limit_ns` for the process to end by itself.
  std::optional<platform::ProcessEnd> close_socket_and_wait(int64_t limit_ns);
  /// Kills the process group; the log stays.
  void kill();

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& log_path() const { return log_path_; }
  [[nodiscard]] pid_t process_id() const { return child_->id(); }

 private:
  Engine(std::string name, std::string log_path, platform::Child child, const EngineContext& context);
  Error with_log(const Error& error);
  /// The same where the engine is gone.
  Error explained(const Error& error);

  std::string name_;
  std::string log_path_;
  EngineContext context_;
  std::unique_ptr<platform::Child> child_;
  std::unique_ptr<ProtocolClient> client_;
};

}  // namespace opledger::session
