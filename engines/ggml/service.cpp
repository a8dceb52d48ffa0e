#include "engines/ggml/service.h"

#include <cmath>
#include <sys/stat.h>

#include "engines/ggml/block.h"
#include "engines/ggml/faults.h"
#include "engines/ggml/graph_json.h"
#include "engines/ggml/identity.h"

namespace opledger::ggml {
namespace {

using Json = nlohmann::json;

constexpr int kMethodNotFound = -32601;
constexpr int kParseError = -32700;
constexpr int kApplicationError = -32000;
constexpr int64_t kMostSpinNs = 1'000'000'000;

const char* kind_name(Error::Kind kind) {
  switch (kind) {
    case Error::Kind::kBadInput:
      return "bad_input";
    case Error::Kind::kEnvironment:
      return "environment";
    default:
      return "failure";
  }
}

Json error_message(const Json& id, int code, const std::string& message, const char* kind) {
  return {{"jsonrpc", "2.0"},
          {"id", id},
          {"error", {{"code", code}, {"message", message}, {"data", {{"kind", kind}}}}}};
}

std::map<std::string, std::string> flags_of(const Json& params) {
  std::map<std::string, std::string> flags;
  const Json given = params.value("flags", Json::object());  // items() does not keep a temporary alive
  for (const auto& [name, value] : given.items()) {
    flags[name] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return flags;
}

Result<KnownUnits> known_units_of(const Json& units) {
  KnownUnits known;
  for (const Json& graph : units) {
    std::vector<UnitNodes> groups;
    for (const Json& group : graph.at("groups")) groups.push_back({group.get<std::vector<int>>(), "given"});
    known[graph.at("signature").get<std::string>()] = std::move(groups);
  }
  return known;
}

/// Work behind units; a null request plants none.
Status plant(Workload& workload, const Json& request) {
  if (request.is_null()) return {};
  for (const Json& entry : request) {
    const int graph = entry.at("unit").at(0).get<int>();
    const int unit = entry.at("unit").at(1).get<int>();
    const auto spin_ns = entry.at("spin_ns").get<int64_t>();
    if (!workload.has_unit(graph, unit))
      return Error::bad_input("plant: unit " + entry.at("unit").dump() + " does not exist in workload " +
                              workload.id);
    if (spin_ns < 0 || spin_ns > kMostSpinNs)
      return Error::bad_input("plant: spin_ns must be between 0 and " + std::to_string(kMostSpinNs));
    workload.graphs[static_cast<size_t>(graph)]->planted[unit] = std::make_unique<Spin>(Spin{spin_ns, {}});
  }
  return {};
}

std::string base64(const char* data, size_t size) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((size + 2) / 3 * 4);
  for (size_t i = 0; i < size; i += 3) {
    uint32_t bits = 0;
    const size_t left = std::min<size_t>(3, size - i);
    for (size_t j = 0; j < 3; ++j)
      bits = bits << 8 | (j < left ? static_cast<unsigned char>(data[i + j]) : 0U);
    for (size_t j = 0; j < 4; ++j) text += j <= left ? kDigits[bits >> (18 - 6 * j) & 63U] : '=';
  }
  return text;
}

}  // namespace

int Service::serve() {
  while (const auto line = channel_.read_line()) {
    const Json request = Json::parse(*line, nullptr, false);
    if (request.is_discarded() || !request.is_object() || !request.contains("method")) {
      channel_.send(error_message(nullptr, kParseError, "not a JSON-RPC 2.0 request", "bad_input"));
      continue;
    }
    const Json id = request.value("id", Json());
    const auto method = request["method"].is_string() ? request["method"].get<std::string>() : "";
    if (method == "shutdown") {
      channel_.send({{"jsonrpc", "2.0"}, {"id", id}, {"result", Json::object()}});
      return 0;
    }
    try {
      const Result<Json> result = call(method, request.value("params", Json::object()));
      if (result) {
        channel_.send({{"jsonrpc", "2.0"}, {"id", id}, {"result", *result}});
      } else {
        const bool is_unknown = result.error().message == method + ": no such method";
        channel_.send(error_message(id, is_unknown ? kMethodNotFound : kApplicationError,
                                    result.error().message, kind_name(result.error().kind)));
      }
    } catch (const Json::exception& problem) {
      channel_.send(error_message(id, kApplicationError,
                                  method + ": a parameter is missing or of the wrong type: " + problem.what(),
                                  "bad_input"));
    }
  }
  return 0;
}

Result<Json> Service::call(const std::string& method, const Json& params) {
  if (method == "initialize") return initialize(params);
  if (method == "estimate") return estimate(params);
  if (method == "load") return load(params);
  if (method == "graph" || method == "prepare" || method == "measure" || method == "logits" ||
      method == "tokenize") {
    if (engine_ == nullptr) return Error::bad_input(method + ": no model is loaded; call load first");
  }
  if (method == "tokenize") return tokenize(params);
  if (method == "graph") return graph(params);
  if (method == "prepare") return prepare(params);
  if (method == "measure") return measure(params);
  if (method == "logits") return logits(params);
  return Error::bad_input(method + ": no such method");
}

Result<Json> Service::initialize(const Json& params) {
  const auto protocol = params.at("protocol").get<std::string>();
  if (protocol != kProtocol) {
    return Error::bad_input("this adapter speaks protocol " + std::string(kProtocol) + ", the core speaks " +
                            protocol + ": add the engine again with `opledger engine add`");
  }
  return identity_json();
}

Result<Json> Service::estimate(const Json& params) {
  const auto path = params.at("model_path").get<std::string>();
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return Error::bad_input(path + ": no such model file; give -m a GGUF file");
  }
  const auto memory = estimate_memory_bytes(path, params.at("context_tokens").get<int>(), flags_of(params));
  return Json{{"memory_bytes", memory ? Json(*memory) : Json(nullptr)},
              {"how", "model file, KV cache of the context from the file's metadata, and a quarter more"}};
}

Result<Json> Service::load(const Json& params) {
  LoadRequest request;
  request.model_path = params.at("model_path").get<std::string>();
  request.context_tokens = params.at("context_tokens").get<int>();
  request.batch_tokens = params.at("batch_tokens").get<int>();
  request.ubatch_tokens = params.at("ubatch_tokens").get<int>();
  request.threads = params.at("threads").get<int>();
  request.flags = flags_of(params);
  if (engine_ != nullptr) return Error::bad_input("load: a model is already loaded in this process");
  if (request.threads < 1 || request.context_tokens < 1 || request.batch_tokens < 1 ||
      request.ubatch_tokens < 1) {
    return Error::bad_input(
        "load: threads, context_tokens, batch_tokens and ubatch_tokens must be at least 1");
  }
  if (const Json fault = params.value("fault", Json()); !fault.is_null()) {
    if (Status status = plant_fault(fault.get<std::string>()); !status) return status.error();
  }
  Result<std::unique_ptr<Engine>> engine = Engine::load(request);
  if (!engine) return engine.error();
  engine_ = std::move(*engine);
  runner_ = std::make_unique<Runner>(*engine_);
  return Json{{"model",
               {{"architecture", engine_->architecture()},
                {"layers", engine_->layers() < 0 ? Json(nullptr) : Json(engine_->layers())},
                {"vocab_tokens", engine_->vocab_tokens()}}},
              {"context_tokens", engine_->context_tokens()},
              {"threads", request.threads},
              {"flags", engine_->flags()}};
}

Result<Json> Service::tokenize(const Json& params) {
  return Json{{"tokens", engine_->tokenize(params.at("text").get<std::string>())}};
}

Result<std::unique_ptr<Workload>> Service::workload_asked(const Json& asked) const {
  auto workload = std::make_unique<Workload>();
  workload->id = asked.at("id").get<std::string>();
  const auto kind = asked.at("kind").get<std::string>();
  if (kind != "prefill" && kind != "decode") {
    return Error::bad_input("workload kind " + kind + ": accepted are prefill and decode");
  }
  workload->is_decode = kind == "decode";
  workload->tokens = asked.at("tokens").get<std::vector<llama_token>>();
  if (workload->is_decode) workload->prompt = asked.at("prompt").get<std::vector<llama_token>>();
  if (workload->tokens.empty()) return Error::bad_input("workload " + workload->id + " has no tokens");
  for (const auto* list : {&workload->prompt, &workload->tokens}) {
    for (llama_token token : *list) {
      // Some engines compute finite logits from a row beyond the table.
      if (token < 0 || token >= engine_->vocab_tokens()) {
        return Error::bad_input("workload " + workload->id + ": token " + std::to_string(token) +
                                " is outside the vocabulary of " + std::to_string(engine_->vocab_tokens()));
      }
    }
  }
  return workload;
}

Result<Json> Service::graph(const Json& params) {
  Result<std::unique_ptr<Workload>> asked = workload_asked(params.at("workload"));
  if (!asked) return asked.error();
  std::unique_ptr<Workload> workload = std::move(*asked);
  const bool has_units = params.contains("units") && !params["units"].is_null();
  KnownUnits known;
  if (has_units) {
    Result<KnownUnits> given = known_units_of(params["units"]);
    if (!given) return given.error();
    known = *given;
  }
  workloads_.erase(workload->id);
  runner_->forget_activation();
  if (Status status =
          runner_->describe(*workload, params.value("probe", false), has_units ? &known : nullptr);
      !status) {
    return status.error();
  }
  if (Status status = plant(*workload, params.value("plant", Json())); !status) return status.error();
  const Json reply = workload_json(*workload);
  workloads_[workload->id] = std::move(workload);
  return reply;
}

Result<Workload*> Service::workload_of(const Json& params) {
  const auto id = params.at("workload").get<std::string>();
  const auto found = workloads_.find(id);
  if (found == workloads_.end())
    return Error::bad_input("workload " + id + " is not known: call graph first");
  return found->second.get();
}

Result<Json> Service::prepare(const Json& params) {
  Result<Workload*> workload = workload_of(params);
  if (!workload) return workload.error();
  (*workload)->arms.clear();
  runner_->weights().drop_shadows();
  Json arms = Json::array();
  for (const Json& request : params.at("arms")) {
    Result<Json> arm = prepare_arm(**workload, request);
    if (!arm) return arm.error();
    arms.push_back(*arm);
  }
  return Json{{"arms", arms}};
}

Result<Json> Service::prepare_arm(Workload& workload, const Json& request) {
  Result<ArmRequest> asked = parse_arm(workload, request);
  if (!asked) return asked.error();
  Arm& arm = workload.arms[asked->id];
  arm.id = asked->id;
  arm.kind = asked->kind;
  if (Status status = runner_->prepare(workload, arm, asked->replays); !status) return status.error();
  return prepared_json(workload, arm, asked->replays, runner_->weights().shadow_bytes());
}

Result<Json> Service::measure(const Json& params) {
  Result<Workload*> workload = workload_of(params);
  if (!workload) return workload.error();
  if (Status status = runner_->activate(**workload); !status) return status.error();
  int sent = 0;
  for (const Json& entry : params.at("schedule")) {
    std::vector<Arm*> arms;
    for (const Json& id : entry.at("arms")) {
      const auto arm = (*workload)->arms.find(id.get<std::string>());
      if (arm == (*workload)->arms.end())
        return Error::bad_input("arm " + id.get<std::string>() + " is not prepared: call prepare first");
      arms.push_back(&arm->second);
    }
    if (arms.empty()) return Error::bad_input("measure: an entry of the schedule has no arms");
    const Turn turn{entry.at("passes").get<int>(), entry.value("warm_up_steps", 0),
                    entry.value("burst_steps", 0), entry.value("verify", false)};
    const Result<std::vector<Json>> blocks =
        measure_turn(*runner_, **workload, arms, turn, [this] { return hold(); });
    if (!blocks) return blocks.error();
    for (const Json& block : *blocks) {
      if (!channel_.send({{"jsonrpc", "2.0"}, {"method", "block"}, {"params", block}}))
        return Error::failure("the core is gone");
      ++sent;
    }
  }
  return Json{{"blocks", sent}};
}

Status Service::hold() {
  if (!channel_.send({{"jsonrpc", "2.0"}, {"method", "hold"}, {"params", Json::object()}}))
    return Error::failure("the core is gone");
  const std::optional<std::string> line = channel_.read_line();
  if (!line) return Error::failure("the core is gone");
  const Json message = Json::parse(*line, nullptr, false);
  const bool goes_on = message.is_object() && message.value("method", Json()) == "continue";
  return goes_on ? Status{}
                 : Status{Error::bad_input("measure: a hold is answered by continue, not by " + *line)};
}

Result<Json> Service::logits(const Json& params) {
  const auto tokens = params.at("tokens").get<std::vector<llama_token>>();
  const int rows = params.at("rows").get<int>();
  if (rows < 1 || rows > static_cast<int>(tokens.size())) {
    return Error::bad_input("logits: rows must be between 1 and the number of tokens");
  }
  runner_->forget_activation();
  engine_->clear();
  if (Status status = engine_->decode(tokens, 0, rows); !status) return status.error();
  Json encoded = Json::array();
  const auto bytes = static_cast<size_t>(engine_->vocab_tokens()) * sizeof(float);
  for (int row = 0; row < rows; ++row) {
    encoded.push_back(base64(reinterpret_cast<const char*>(engine_->logits(row)), bytes));
  }
  return Json{{"vocab_tokens", engine_->vocab_tokens()}, {"rows", encoded}};
}

}  // namespace opledger::ggml
