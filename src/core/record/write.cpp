// Serialises each type of line. Key order is alphabetical (the JSON library's), which no reader may rely on.
#include "core/record/write.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <variant>

#include "core/base/check.h"

namespace opledger::core {

namespace {

using Json = nlohmann::json;

Json embedded(const std::string& json) {
  Json value = Json::parse(json, nullptr, false);
  OPLEDGER_CHECK(!value.is_discarded());
  return value;
}

// Paths and environment are bytes, not always UTF-8; the record must stay valid JSON all the same.
std::string finished(const Json& line) {
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json unit_json(const UnitName& unit) {
  return Json::array({unit.graph, unit.unit});
}

Json place_json(const BlockPlace& place) {
  return {{"type", "block"},      {"side", side_name(place.side)}, {"workload", place.workload},
          {"group", place.group}, {"round", place.round},          {"stint", place.stint},
          {"turn", place.turn},   {"sequence", place.sequence}};
}

}  // namespace

std::string record_line(const Header& header) {
  const MachineFacts& m = header.machine;
  return finished({{"type", "header"},
                   {"schema", "opledger-record"},
                   {"version", kRecordVersion},
                   {"opledger", {{"version", header.opledger_version}}},
                   {"command", header.command},
                   {"started", header.started},
                   {"seed", header.seed},
                   {"machine",
                    {{"cpu", m.cpu},
                     {"cores", m.cores},
                     {"isa", m.isa},
                     {"memory_bytes", m.memory_bytes},
                     {"virtual", or_null(m.is_virtual)},
                     {"l2_bytes", or_null(m.l2_bytes)},
                     {"l3_bytes", or_null(m.l3_bytes)},
                     {"kernel", m.kernel}}},
                   {"budget_s", or_null(header.budget_s)},
                   {"precision_ratio", or_null(header.precision_ratio)},
                   {"rows", header.rows}});
}

std::string record_line(const CacheProbe& cache) {
  Json curve = Json::array();
  for (const CacheProbe::Point& point : cache.curve)
    curve.push_back({{"bytes", point.bytes}, {"read_bytes_per_s", point.read_bytes_per_s}});
  return finished({{"type", "cache"}, {"curve", curve}, {"knee_bytes", or_null(cache.knee_bytes)}});
}

std::string record_line(const EngineFacts& engine) {
  return finished({{"type", "engine"},
                   {"side", side_name(engine.side)},
                   {"spec", engine.spec},
                   {"name", engine.name},
                   {"initialize", embedded(engine.initialize_json)},
                   {"load_params", embedded(engine.load_params_json)},
                   {"load", embedded(engine.load_json)},
                   {"environment", engine.environment}});
}

std::string record_line(const ModelLine& model) {
  Json metadata = Json::object();
  for (const auto& entry : model.facts.metadata)
    std::visit([&](const auto& scalar) { metadata[entry.first] = scalar; }, entry.second);
  Json tensors = Json::array();
  for (const ModelTensor& tensor : model.facts.tensors)
    tensors.push_back(
        {{"name", tensor.name}, {"type", tensor.type}, {"ne", tensor.ne}, {"bytes", tensor.bytes}});
  return finished({{"type", "model"},
                   {"side", side_name(model.side)},
                   {"path", model.path},
                   {"bytes", model.bytes},
                   {"architecture", model.facts.architecture},
                   {"metadata", metadata},
                   {"tensors", tensors}});
}

std::string record_line(const WorkloadFacts& workload) {
  return finished({{"type", "workload"},
                   {"id", workload.id},
                   {"kind", workload.kind == WorkloadKind::kPrefill ? "prefill" : "decode"},
                   {"tokens_per_pass", workload.tokens_per_pass},
                   {"depth_tokens", workload.depth_tokens},
                   {"token_source", workload.token_source}});
}

std::string record_line(const GraphFacts& graph) {
  return finished({{"type", "graph"},
                   {"side", side_name(graph.side)},
                   {"workload", graph.workload},
                   {"graph", embedded(graph.graph_json)}});
}

std::string record_line(const ArmsFacts& arms) {
  return finished({{"type", "arms"},
                   {"side", side_name(arms.side)},
                   {"workload", arms.workload},
                   {"group", arms.group},
                   {"arms", embedded(arms.arms_json)},
                   {"prepared", embedded(arms.prepared_json)}});
}

std::string record_line(const LogitsFacts& logits) {
  return finished({{"type", "logits"},
                   {"workload", logits.workload},
                   {"rows", logits.rows},
                   {"top1_agreement_ratio", or_null(logits.top1_agreement_ratio)},
                   {"kl_nats_mean", or_null(logits.kl_nats_mean)}});
}

std::string record_line(const Event& event) {
  Json line = {{"type", "event"},
               {"kind", event.kind},
               {"side", event.side ? Json(side_name(*event.side)) : Json(nullptr)},
               {"text", event.text}};
  if (!event.workload.empty()) line["workload"] = event.workload;
  if (event.unit) line["unit"] = unit_json(*event.unit);
  if (!event.reason.empty()) line["reason"] = event.reason;
  return finished(line);
}

std::string record_line(const Block& block) {
  Json passes = Json::array();
  for (const Pass& pass : block.passes) {
    passes.push_back({{"wall_ns", pass.wall_ns},
                      {"graph_ns", pass.graph_ns},
                      {"instrument_ns", pass.instrument_ns},
                      {"digest", pass.digest}});
    if (!pass.step_graph_ns.empty()) passes.back()["step_graph_ns"] = pass.step_graph_ns;
  }
  Json threads = Json::array();
  for (const ThreadUse& thread : block.threads)
    threads.push_back({{"cpu_ns", thread.cpu_ns}, {"run_delay_ns", or_null(thread.run_delay_ns)}});
  const Json body = {{"workload", block.place.workload},
                     {"arm", block.arm},
                     {"verify", block.is_verify},
                     {"passes", passes},
                     {"digests", block.digests},
                     {"logits", or_null(block.logits)},
                     {"unit_ns", or_null(block.unit_ns)},
                     {"copy_ns", or_null(block.copy_ns)},
                     {"head_ns", or_null(block.head_ns)},
                     {"tail_ns", or_null(block.tail_ns)},
                     {"state_digest", or_null(block.state_digest)},
                     {"shared_inputs", or_null(block.shared_inputs)},
                     {"threads", threads},
                     {"voluntary_switches", or_null(block.voluntary_switches)},
                     {"involuntary_switches", or_null(block.involuntary_switches)},
                     {"started_ns", block.started_ns},
                     {"ended_ns", block.ended_ns},
                     {"elapsed_ns", block.elapsed_ns}};
  return block_line(block.place, finished(body));
}

std::string block_line(const BlockPlace& place, std::string_view block_json) {
  OPLEDGER_CHECK(block_json.find('\n') == std::string_view::npos);
  std::string line = finished(place_json(place));
  line.pop_back();
  return fmt::format("{},\"block\":{}}}", line, block_json);
}

std::string group_line(int group) {
  return finished({{"type", "group"}, {"group", group}});
}

std::string end_line(std::string_view reason) {
  return finished({{"type", "end"}, {"reason", std::string(reason)}});
}

}  // namespace opledger::core
