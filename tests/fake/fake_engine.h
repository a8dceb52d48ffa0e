// A scripted engine: it answers every method of the protocol with planted figures, and misbehaves where its
// script says so. It computes nothing and never sleeps: the times it reports are the ones that were planted.
#pragma once

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "fake_model.h"
#include "fake_script.h"

namespace opledger::fake {

/// An answer that the protocol calls an error.
struct Refusal {
  int code = -32000;
  std::string message;
  std::string kind = "bad_input";
};

class FakeEngine {
 public:
  FakeEngine(Script script, int socket_fd);
  /// Serves until shutdown or until the socket closes; returns the exit status.
  int serve();

 private:
  struct ArmUnit {
    int copies = 1;
    nlohmann::json weights;
  };
  struct Arm {
    std::string kind;
    std::map<int, ArmUnit> units;
    [[nodiscard]] bool holds_any(const std::vector<int>& wanted) const {
      return std::any_of(wanted.begin(), wanted.end(), [&](int unit) { return units.count(unit) > 0; });
    }
  };
  struct Workload {
    std::string id;
    bool is_decode = false;
    int64_t tokens = 0;  ///< in one pass
    int64_t calls = 1;
    std::string signature;
    FakeGraph graph;
    std::map<std::string, Arm> arms;
    std::map<int, int64_t> planted;  ///< unit -> nanoseconds per call
  };
  struct PassTimes {
    std::vector<int64_t> unit_ns;
    std::vector<int64_t> copy_ns;
    int64_t graph_ns = 0;
  };

  nlohmann::json answer(const std::string& method, const nlohmann::json& params);
  nlohmann::json initialize(const nlohmann::json& params) const;
  nlohmann::json load(const nlohmann::json& params);
  nlohmann::json graph(const nlohmann::json& params);
  nlohmann::json prepare(const nlohmann::json& params);
  nlohmann::json measure(const nlohmann::json& params);
  nlohmann::json logits(const nlohmann::json& params) const;

  Workload& workload_named(const nlohmann::json& params);
  nlohmann::json prepare_arm(const Workload& workload, const nlohmann::json& asked, Arm& arm) const;
  nlohmann::json block_of(const Workload& workload, const std::string& arm_id, int passes, bool verify);
  PassTimes time_pass(const Workload& workload, const Arm& arm);
  double planted_ns(const Workload& workload, const FakeUnit& unit) const;
  /// Of work that the core planted, per pass.
  [[nodiscard]] int64_t spun_ns(const Workload& workload, int unit) const;
  [[nodiscard]] nlohmann::json spins_of(const Workload& workload, const Arm& arm, int passes) const;
  /// What `load` asked for, unless the script ignores it.
  void plant_fault(const std::string& fault);
  [[nodiscard]] bool changes_digest(const Workload& workload, const Arm& arm) const;

  /// Plays the scripted fault for this message, if there is one.
  void misbehave(const std::string& method, const nlohmann::json& params, nlohmann::json& reply);
  void send(const std::string& text) const;
  /// The next line; nothing when the socket closed.
  std::optional<nlohmann::json> read_message();
  /// Between two bursts of a turn: waits until the core says to go on.
  void hold();

  Script script_;
  int socket_fd_;
  std::string buffer_;
  std::mt19937_64 random_;
  std::map<std::string, int> seen_;
  bool is_loaded_ = false;
  int64_t ubatch_tokens_ = 512;
  std::map<std::string, Workload> workloads_;
};

}  // namespace opledger::fake
