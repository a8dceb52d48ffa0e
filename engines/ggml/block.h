// Arms and blocks in the protocol's form: what `prepare` is asked and answers, and what `measure` reports.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engines/ggml/runner.h"

namespace opledger::ggml {

struct ArmRequest {
  std::string id;
  ArmKind kind = ArmKind::kBaseline;
  std::vector<std::vector<UnitReplay>> replays;  ///< one list per graph
};

Result<ArmRequest> parse_arm(const Workload& workload, const nlohmann::json& request);

nlohmann::json prepared_json(const Workload& workload, const Arm& arm,
                             const std::vector<std::vector<UnitReplay>>& replays, size_t shadow_bytes);

struct Turn {
  int passes = 1;
  int warm_up_steps = 0;
  int burst_steps = 0;
  bool verify = false;
};

/// Runs `passes` passes of every arm, which take turns step by step, and reports a block of each; calls
/// `hold` between bursts. When `verify`: one arm after the other, with the digest of lasting memory.
Result<std::vector<nlohmann::json>> measure_turn(Runner& runner, Workload& workload,
                                                 const std::vector<Arm*>& arms, const Turn& turn,
                                                 const std::function<Status()>& hold);

/// Model file, KV cache and working memory; nothing when the file's metadata does not say.
std::optional<int64_t> estimate_memory_bytes(const std::string& model_path, int context_tokens,
                                             const std::map<std::string, std::string>& flags);

}  // namespace opledger::ggml
