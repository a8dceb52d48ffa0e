// Starting and describing an engine; the same steps for the probing launch and for every launch group.
#include "session/side.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "platform/machine.h"

namespace opledger::session {
namespace {

using nlohmann::json;

Error bad_reply(const Side& side, const char* method, const char* key) {
  return Error::failure(
      fmt::format("{}: its reply to {} has no usable \"{}\"; run `opledger engine check {}`",
                  side.program.name, method, key, side.program.name));
}

Status read_capabilities(Side& side) {
  const json capabilities = side.initialize.value("capabilities", json());
  if (!capabilities.is_object()) return bad_reply(side, "initialize", "capabilities");
  const json engine = side.initialize.value("engine", json());
  if (!engine.is_object() || !engine.value("family", json()).is_string()) {
    return bad_reply(side, "initialize", "engine.family");
  }
  side.arm_kinds.clear();
  for (const json& kind : capabilities.value("arms", json::array())) {
    if (kind.is_string()) side.arm_kinds.push_back(kind);
  }
  if (std::find(side.arm_kinds.begin(), side.arm_kinds.end(), "baseline") == side.arm_kinds.end()) {
    return bad_reply(side, "initialize", "capabilities.arms");
  }
  return {};
}

Status check_fault(const Side& side) {
  if (side.fault.empty()) return {};
  const json offered = side.initialize.value("capabilities", json::object()).value("faults", json::array());
  if (std::find(offered.begin(), offered.end(), side.fault) != offered.end()) return {};
  return Error::bad_input(fmt::format("{}: it cannot plant the fault {}: its capabilities.faults are {}",
                                      side.program.name, side.fault, offered.dump()));
}

Status check_memory(Side& side, int64_t context_tokens) {
  Result<json> estimate = side.engine->call("estimate", {{"model_path", side.settings.model_path},
                                                         {"context_tokens", context_tokens},
                                                         {"threads", side.settings.threads},
                                                         {"flags", side.settings.flags}});
  if (!estimate) return estimate.error();
  const json bytes = estimate->is_object() ? estimate->value("memory_bytes", json()) : json();
  side.memory_bytes.reset();
  if (bytes.is_number_integer()) side.memory_bytes = bytes.get<int64_t>();
  const std::optional<int64_t> available = platform::available_memory_bytes();
  if (side.memory_bytes && available && *side.memory_bytes > *available) {
    constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
    return Error::environment(
        fmt::format("{}: {} with a context of {} tokens needs {:.1f} GiB of memory, {:.1f} GiB are free; "
                    "shorten -p, -n or -d, or "
                    "take a smaller model",
                    side.program.name, side.settings.model_path, context_tokens,
                    static_cast<double>(*side.memory_bytes) / kGib, static_cast<double>(*available) / kGib));
  }
  return {};
}

}  // namespace

bool Side::can(const char* capability) const {
  const json capabilities = initialize.value("capabilities", json::object());
  return capabilities.value(capability, json()) == true;
}

bool Side::can_give(const char* weights) const {
  const json capabilities = initialize.value("capabilities", json::object());
  const json given = capabilities.value("weights", json::array());
  return std::find(given.begin(), given.end(), weights) != given.end();
}

int Side::layers() const {
  const json layers = load.at("model").value("layers", json());
  return layers.is_number_integer() ? layers.get<int>() : 1;
}

int Side::layer_interval() const {
  const std::string architecture = model.text("general.architecture").value_or("");
  return static_cast<int>(model.integer(architecture + ".full_attention_interval").value_or(1));
}

Result<Side> resolve_side(core::Side which, const std::string& spec,
                          const std::map<std::string, std::string>& flags, int cores) {
  Side side;
  side.side = which;
  Result<EngineSpec> parsed = parse_engine_spec(spec);
  if (!parsed) return parsed.error();
  side.spec = std::move(*parsed);
  Result<LoadSettings> settings = load_settings(side.spec, flags, cores);
  if (!settings) return settings.error();
  side.settings = std::move(*settings);
  Result<EngineProgram> program = find_engine_program(side.spec);
  if (!program) return program.error();
  side.program = std::move(*program);
  Result<gguf::GgufFile> model = gguf::read_gguf(side.settings.model_path);
  if (!model) return model.error();
  side.model = std::move(*model);
  return side;
}

Status start_and_load(Side& side, int64_t context_tokens, const EngineContext& context) {
  side.engine.reset();
  Result<Engine> started = Engine::start_initialized(side.program, context, side.initialize);
  if (!started) return started.error();
  side.engine.emplace(std::move(*started));
  if (Status status = read_capabilities(side); !status) return status;
  if (Status status = check_fault(side); !status) return status;
  if (Status status = check_memory(side, context_tokens); !status) return status;
  side.load_params = {
      {"model_path", side.settings.model_path},     {"context_tokens", context_tokens},
      {"batch_tokens", side.settings.batch_tokens}, {"ubatch_tokens", side.settings.ubatch_tokens},
      {"threads", side.settings.threads},           {"flags", side.settings.flags}};
  if (!side.fault.empty()) side.load_params["fault"] = side.fault;
  Result<json> loaded = side.engine->call("load", side.load_params);
  if (!loaded) return loaded.error();
  const json model = loaded->is_object() ? loaded->value("model", json()) : json();
  if (!model.is_object()) return bad_reply(side, "load", "model");
  const json vocab = model.value("vocab_tokens", json());
  if (!vocab.is_number_integer() || vocab.get<int64_t>() < 1)
    return bad_reply(side, "load", "model.vocab_tokens");
  side.load = std::move(*loaded);
  return {};
}

Result<json> ask_graph(Side& side, const Workload& workload, bool probe, const json& given_units,
                       const json& planted) {
  json params{{"workload", workload.to_json()}, {"probe", probe}, {"units", given_units}};
  if (!planted.is_null()) params["plant"] = planted;
  return side.engine->call("graph", std::move(params));
}

json groups_of(const core::WorkloadGraph& graph) {
  json list = json::array();
  std::set<std::string> seen;
  for (const core::Graph& one : graph.graphs) {
    json groups = json::array();
    for (const core::Unit& unit : one.units) {
      if (unit.nodes.size() > 1) groups.push_back(unit.nodes);
    }
    if (seen.insert(one.signature).second) list.push_back({{"signature", one.signature}, {"groups", groups}});
  }
  return list.empty() ? json() : list;
}

Status check_same_graph(const std::string& engine, const core::WorkloadGraph& probed,
                        const core::WorkloadGraph& measured) {
  const auto differs = [&](const std::string& what) {
    return Error::failure(
        fmt::format("{}: {} of {} differ between two launches, so their times cannot be joined; is "
                    "its graph built at random?",
                    engine, what, probed.workload));
  };
  if (probed.calls != measured.calls || probed.graphs.size() != measured.graphs.size())
    return differs("graph calls");
  for (size_t g = 0; g < probed.graphs.size(); ++g) {
    if (probed.graphs[g].signature != measured.graphs[g].signature) return differs("graph signatures");
    const auto& units = probed.graphs[g].units;
    const auto& others = measured.graphs[g].units;
    const bool are_same =
        std::equal(units.begin(), units.end(), others.begin(), others.end(),
                   [](const core::Unit& x, const core::Unit& y) { return x.nodes == y.nodes; });
    if (!are_same) return differs("units");
  }
  return {};
}

}  // namespace opledger::session
