// Names follow llama-bench: pp512, tg16@64.
#include "session/workloads.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "session/random.h"

namespace opledger::session {
namespace {

Status check_counts(const std::vector<int>& counts, const char* flag) {
  for (const int count : counts) {
    if (count < 0)
      return Error::bad_input(fmt::format("{} {}: give a number of tokens from 0 up", flag, count));
  }
  return {};
}

}  // namespace

nlohmann::json Workload::to_json() const {
  if (facts.kind == core::WorkloadKind::kPrefill)
    return {{"id", facts.id}, {"kind", "prefill"}, {"tokens", tokens}};
  return {{"id", facts.id}, {"kind", "decode"}, {"prompt", prompt}, {"tokens", tokens}};
}

Result<int64_t> needed_tokens(const WorkloadRequest& request) {
  for (const auto& [counts, flag] :
       {std::pair{&request.prefill_tokens, "-p"}, std::pair{&request.decode_tokens, "-n"},
        std::pair{&request.depth_tokens, "-d"}}) {
    if (Status status = check_counts(*counts, flag); !status) return status.error();
  }
  int64_t needed = 0;
  for (const int tokens : request.prefill_tokens) needed = std::max<int64_t>(needed, tokens);
  for (const int tokens : request.decode_tokens) {
    if (tokens == 0) continue;
    for (const int depth : request.depth_tokens) {
      if (depth == 0) {
        return Error::bad_input(
            "-d 0: engines build another graph for the first token of a sequence; use -d 1 or more");
      }
      needed = std::max<int64_t>(needed, int64_t{tokens} + depth);
    }
  }
  if (needed == 0) return Error::bad_input("nothing to measure: give -p TOKENS, or -n TOKENS with -d DEPTH");
  return needed;
}

std::vector<Workload> make_workloads(const WorkloadRequest& request, const std::vector<int64_t>& ids,
                                     const std::string& token_source) {
  std::vector<Workload> workloads;
  const auto add = [&](core::WorkloadKind kind, std::string id, int tokens, int depth) {
    const bool is_known = std::any_of(workloads.begin(), workloads.end(),
                                      [&](const Workload& other) { return other.facts.id == id; });
    if (tokens == 0 || is_known) return;
    Workload workload;
    workload.facts = {std::move(id), kind, tokens, depth, token_source};
    workload.prompt.assign(ids.begin(), ids.begin() + depth);
    workload.tokens.assign(ids.begin() + depth, ids.begin() + depth + tokens);
    workloads.push_back(std::move(workload));
  };
  for (const int tokens : request.prefill_tokens) {
    add(core::WorkloadKind::kPrefill, fmt::format("pp{}", tokens), tokens, 0);
  }
  for (const int tokens : request.decode_tokens) {
    for (const int depth : request.depth_tokens) {
      add(core::WorkloadKind::kDecode, fmt::format("tg{}@{}", tokens, depth), tokens, depth);
    }
  }
  return workloads;
}

std::vector<int64_t> seeded_ids(uint64_t seed, int64_t count, int64_t vocab_tokens) {
  Random random(seed);
  std::vector<int64_t> ids(static_cast<size_t>(count));
  for (int64_t& id : ids) id = static_cast<int64_t>(random.below(static_cast<uint64_t>(vocab_tokens)));
  return ids;
}

}  // namespace opledger::session
