// One launch, no times.
#include "session/describe.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "platform/machine.h"
#include "session/model_facts.h"
#include "session/side.h"

namespace opledger::session {
namespace {

using nlohmann::json;

Result<Described> describe(Side& side, const DescribeOptions& options, int64_t tokens,
                           const EngineContext& context) {
  const int64_t context_tokens = std::max<int64_t>(tokens, 64);
  if (Status status = start_and_load(side, context_tokens, context); !status) return status.error();
  const std::vector<int64_t> ids = seeded_ids(options.seed, tokens, side.load.at("model").at("vocab_tokens"));
  Described described;
  described.family = side.initialize.at("engine").at("family");
  described.model = core_facts_of(side.model);
  json graphs = json::array();
  for (const Workload& workload : make_workloads(options.workloads, ids, "seeded ids")) {
    const bool probe = options.probe && side.may_probe && side.can("probe");
    Result<json> reply = ask_graph(side, workload, probe, json());
    if (!reply && probe && side.engine->is_gone() && reply.error().kind == Error::Kind::kFailure) {
      side.may_probe = false;
      if (Status status = start_and_load(side, context_tokens, context); !status) return status.error();
      reply = ask_graph(side, workload, false, json());
    }
    if (!reply) return reply.error();
    Result<core::WorkloadGraph> graph = core::parse_workload_graph(reply->dump());
    if (!graph) {
      return Error::failure(
          fmt::format("{}: its reply to graph cannot be used: {}", side.program.name, graph.error().message));
    }
    described.workloads.push_back(workload.facts);
    described.graphs.push_back(std::move(*graph));
    graphs.push_back(std::move(*reply));
  }
  if (Status status = side.engine->shutdown(); !status) return status.error();
  described.json_text = json{{"engine", side.initialize}, {"load", side.load}, {"graphs", graphs}}.dump(1);
  return described;
}

}  // namespace

Result<Described> describe_engine(const DescribeOptions& options, const platform::Clock& clock,
                                  const platform::Interrupt& interrupt) {
  Result<int64_t> tokens = needed_tokens(options.workloads);
  if (!tokens) return tokens.error();
  Result<Side> side =
      resolve_side(core::Side::kA, options.spec, options.flags, platform::machine_facts().cores);
  if (!side) return side.error();
  EngineContext context;
  context.clock = &clock;
  context.interrupt_fd = interrupt.fd();
  context.request_limit_ns = options.engine_limit_ns;
  context.log_folder = options.log_folder;
  try {
    return describe(*side, options, *tokens, context);
  } catch (const json::exception& error) {
    return Error::failure(
        fmt::format("{}: a reply does not have the protocol's form: {}; run `opledger engine check {}`",
                    side->program.name, error.what(), side->program.name));
  }
}

}  // namespace opledger::session
