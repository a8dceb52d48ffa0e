// What is run: workloads from the command line's counts, and the token ids they run on. The ids are seeded,
// or come from a prompt file; repeated or hand-picked tokens would make a MoE model's routing look better
// than it is.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/record/record.h"

namespace opledger::session {

struct WorkloadRequest {
  std::vector<int> prefill_tokens;  ///< -p
  std::vector<int> decode_tokens;   ///< -n
  std::vector<int> depth_tokens;    ///< -d, each combined with each -n
};

struct Workload {
  core::WorkloadFacts facts;
  std::vector<int64_t> prompt;  ///< decode only
  std::vector<int64_t> tokens;  ///< of one pass

  /// Tokens that a sequence must hold.
  [[nodiscard]] int64_t context_tokens() const {
    return static_cast<int64_t>(prompt.size()) + static_cast<int64_t>(tokens.size());
  }
  /// Decodes of one pass.
  [[nodiscard]] int steps() const {
    return facts.kind == core::WorkloadKind::kDecode ? static_cast<int>(tokens.size()) : 1;
  }
  /// As the protocol's `graph` takes it.
  [[nodiscard]] nlohmann::json to_json() const;
};

/// Tokens that the longest of these workloads needs. Zero counts ("-p 0") name no workload. Bad input: none
/// left, a negative count, a decode at depth 0.
Result<int64_t> needed_tokens(const WorkloadRequest& request);

/// `ids` must hold `needed_tokens(request)` ids or more; every workload starts at its front.
std::vector<Workload> make_workloads(const WorkloadRequest& request, const std::vector<int64_t>& ids,
                                     const std::string& token_source);

/// `count` ids, uniform over [0, vocab_tokens), the same for the same seed on every machine.
std::vector<int64_t> seeded_ids(uint64_t seed, int64_t count, int64_t vocab_tokens);

}  // namespace opledger::session
