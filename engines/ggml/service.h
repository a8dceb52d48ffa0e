// The protocol's methods (docs/protocol.md), on top of Engine and Runner.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "engines/ggml/channel.h"
#include "engines/ggml/engine.h"
#include "engines/ggml/runner.h"

namespace opledger::ggml {

class Service {
 public:
  explicit Service(Channel& channel) : channel_(channel) {}
  /// Serves until `shutdown` or until the parent closes the socket. Returns the exit code.
  int serve();

 private:
  using Json = nlohmann::json;
  Result<Json> call(const std::string& method, const Json& params);
  Result<Json> initialize(const Json& params);
  Result<Json> estimate(const Json& params);
  Result<Json> load(const Json& params);
  Result<Json> tokenize(const Json& params);
  Result<Json> graph(const Json& params);
  Result<Json> prepare(const Json& params);
  Result<Json> measure(const Json& params);
  Result<Json> logits(const Json& params);

  /// A workload as `graph` is asked for it, not described yet.
  [[nodiscard]] Result<std::unique_ptr<Workload>> workload_asked(const Json& asked) const;
  Result<Workload*> workload_of(const Json& params);
  /// Between two bursts of a turn: tells the core, which may stop this process, and waits until it says go
  /// on.
  Status hold();
  Result<Json> prepare_arm(Workload& workload, const Json& request);

  Channel& channel_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Runner> runner_;
  std::map<std::string, std::unique_ptr<Workload>> workloads_;
};

}  // namespace opledger::ggml
