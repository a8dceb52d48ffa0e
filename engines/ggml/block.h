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

/// Runs `passes` passes of one arm and reports them; when `verify`, with the digest of lasting memory.
Result<nlohmann::json> measure_block(Runner& runner, Workload& workload, Arm& arm, int passes, bool verify);

/// Model file, KV cache and working memory; nothing when the file's metadata does not say.
std::optional<int64_t> estimate_memory_bytes(const std::string& model_path, int context_tokens,
                                             const std::map<std::string, std::string>& flags);

}  // namespace opledger::ggml
