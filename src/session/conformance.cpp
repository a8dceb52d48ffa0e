// One process for what needs a model, short ones for how an engine begins and ends.
#include "session/conformance.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <utility>

#include "session/arms.h"
#include "session/block_check.h"
#include "session/plant.h"
#include "session/side.h"
#include "session/workloads.h"

namespace opledger::session {
namespace {

using nlohmann::json;

constexpr int64_t kEndLimitNs = 10'000'000'000;
constexpr int64_t kPlantedSpinNs = 50'000;

class Suite {
 public:
  Suite(const ConformanceOptions& options, const EngineContext& context)
      : options_(options), context_(context) {}

  Result<ConformanceReport> run() {
    Result<Engine> first = Engine::start(options_.program, context_);
    if (!first) return first.error();
    engine_.emplace(std::move(*first));
    check_beginning();
    if (options_.model_path && is_usable()) {
      check_loading();
    } else {
      not_run("loads the model",
              options_.model_path ? "the engine does not get that far" : "no model is given (-m)");
    }
    if (is_loaded_) {
      check_workload(prefill());
      check_workload(decode());
      check_plant(decode());
      check_tokenize();
      check_logits();
    }
    check_shutdown();
    check_socket_close();
    return std::move(report_);
  }

 private:
  void add(const std::string& name, ConformanceStatus status, std::string text) {
    report_.checks.push_back({name, status, std::move(text)});
    if (options_.on_check) options_.on_check(report_.checks.back());
  }
  void not_run(const std::string& name, const std::string& why) {
    add(name, ConformanceStatus::kNotRun, why);
  }
  bool expect(const std::string& name, bool holds, const std::string& text) {
    add(name, holds ? ConformanceStatus::kHeld : ConformanceStatus::kFailed, text);
    return holds;
  }
  /// Held when the request is refused as bad input and the engine goes on.
  void expect_refused(const std::string& name, const std::string& method, const json& params,
                      Error::Kind kind = Error::Kind::kBadInput) {
    if (!is_usable()) return not_run(name, "the engine is gone");
    const Result<json> reply = engine_->call(method, params);
    if (reply) {
      expect(name, false, "it was accepted");
      return;
    }
    expect(name, !engine_->is_gone() && reply.error().kind == kind, reply.error().message);
  }
  [[nodiscard]] bool is_usable() const { return engine_ && !engine_->is_gone(); }

  void check_beginning() {
    expect_refused("refuses another protocol version", "initialize", {{"protocol", "no such version"}});
    restart();
    Result<json> reply = engine_->call("initialize", {{"protocol", kProtocolVersion}});
    if (!reply) {
      expect("says who it is", false, reply.error().message);
      return;
    }
    side_.initialize = *reply;
    const json engine = reply->is_object() ? reply->value("engine", json()) : json();
    const bool is_named = engine.is_object() && engine.value("family", json()).is_string();
    const json capabilities = reply->is_object() ? reply->value("capabilities", json()) : json();
    const bool has_arms = capabilities.is_object() && capabilities.value("arms", json()).is_array();
    is_initialized_ = is_named && has_arms && reply->value("protocol", json()) == kProtocolVersion;
    expect("says who it is", is_initialized_,
           is_named ? engine.value("family", json()).get<std::string>() : "no engine.family");
    if (has_arms) {
      for (const json& kind : capabilities["arms"]) side_.arm_kinds.push_back(kind.is_string() ? kind : "?");
    }
    // -32601 has no kind of its own in version 1: any refusal that leaves the engine usable will do.
    const Result<json> unknown = engine_->call("no_such_method", json::object());
    expect("refuses an unknown method", !unknown && !engine_->is_gone(),
           unknown ? "it was accepted" : unknown.error().message);
    expect_refused("refuses a missing parameter", "load", {{"flags", json::object()}});
  }

  /// A version refused may end the process: that is allowed.
  void restart() {
    engine_.reset();
    Result<Engine> again = Engine::start(options_.program, context_);
    if (again) engine_.emplace(std::move(*again));
  }

  json load_params(const std::string& model, json flags) const {
    return {{"model_path", model},  {"context_tokens", 128},       {"batch_tokens", 512},
            {"ubatch_tokens", 512}, {"threads", options_.threads}, {"flags", std::move(flags)}};
  }

  void check_loading() {
    expect_refused("refuses a model that is not there", "load",
                   load_params("/no/such/model.gguf", json::object()));
    expect_refused("refuses an unknown flag", "load",
                   load_params(*options_.model_path, {{"no-such-flag", "1"}}));
    if (!is_usable()) return not_run("loads the model", "the engine is gone");
    const Result<json> estimate = engine_->call("estimate", {{"model_path", *options_.model_path},
                                                             {"context_tokens", 128},
                                                             {"threads", options_.threads},
                                                             {"flags", json::object()}});
    expect("estimates its memory", estimate.is_ok(), estimate ? estimate->dump() : estimate.error().message);
    const Result<json> loaded = engine_->call("load", load_params(*options_.model_path, json::object()));
    const json model = loaded && loaded->is_object() ? loaded->value("model", json()) : json();
    const json vocab = model.is_object() ? model.value("vocab_tokens", json()) : json();
    is_loaded_ = vocab.is_number_integer() && vocab.get<int64_t>() > 0;
    expect("loads the model", is_loaded_, loaded ? model.dump() : loaded.error().message);
    if (!is_loaded_) return;
    side_.load = *loaded;
    vocab_tokens_ = vocab;
  }

  [[nodiscard]] Workload prefill() const {
    const WorkloadRequest request{{static_cast<int>(options_.prefill_tokens)}, {}, {}};
    return make_workloads(request, seeded_ids(1, options_.prefill_tokens, vocab_tokens_), "seeded ids")
        .front();
  }
  [[nodiscard]] Workload decode() const {
    const WorkloadRequest request{
        {}, {static_cast<int>(options_.decode_tokens)}, {static_cast<int>(options_.depth_tokens)}};
    const int64_t count = options_.decode_tokens + options_.depth_tokens;
    return make_workloads(request, seeded_ids(1, count, vocab_tokens_), "seeded ids").front();
  }

  std::optional<core::WorkloadGraph> graph_of(const Workload& workload, bool probe, const json& units,
                                              const std::string& name) {
    if (!is_usable()) {
      not_run(name, "the engine is gone");
      return std::nullopt;
    }
    const Result<json> reply =
        engine_->call("graph", {{"workload", workload.to_json()}, {"probe", probe}, {"units", units}});
    if (!reply) {
      expect(name, false, reply.error().message);
      return std::nullopt;
    }
    Result<core::WorkloadGraph> graph = core::parse_workload_graph(reply->dump());
    if (!expect(name, graph.is_ok(),
                graph ? fmt::format("{} units", graph->unit_count()) : graph.error().message)) {
      return std::nullopt;
    }
    return std::move(*graph);
  }

  void check_workload(const Workload& workload) {
    const std::string& id = workload.facts.id;
    const bool probe = side_.can("probe");
    probed_ = graph_of(workload, probe, json(), id + ": gives a sound graph");
    if (!probed_) return;
    const core::WorkloadGraph* probed = &*probed_;
    const auto graph = graph_of(workload, false, groups_of(*probed), id + ": takes units that it gave");
    if (!graph) return;
    const Status same = check_same_graph(options_.program.name, *probed, *graph);
    expect(id + ": gives the same graph again", same.is_ok(),
           same ? "same signatures and units" : same.error().message);
    std::vector<ArmPlan> arms = base_arms(side_.arm_kinds);
    for (ArmPlan& arm : replay_arms({"all", units_in_order(*graph), 1.0}, side_.arm_kinds, 2, 1)) {
      for (AskedUnit& unit : arm.units) unit.weights = "same";
      arms.push_back(std::move(arm));
    }
    json asked = json::array();
    for (const ArmPlan& arm : arms) asked.push_back(arm.to_json(false));
    const Result<json> prepared = engine_->call("prepare", {{"workload", id}, {"arms", asked}});
    const bool is_prepared = prepared && prepared->is_object() &&
                             prepared->value("arms", json()).is_array() &&
                             prepared->at("arms").size() == arms.size();
    if (!expect(id + ": prepares every arm", is_prepared, prepared ? "" : prepared.error().message)) return;
    check_blocks(workload, *graph, arms);
    expect_refused(
        id + ": refuses an arm that is not prepared", "measure",
        {{"workload", id},
         {"schedule", {{{"arms", json::array({"no such arm"})}, {"passes", 1}, {"verify", false}}}}});
  }

  static json spins_behind(const core::WorkloadGraph& graph, int64_t spin_ns) {
    json spins = json::array();
    for (const PlantedSpin& spin : spread_spins(graph, units_in_order(graph), 0))
      spins.push_back({{"unit", {spin.unit.graph, spin.unit.unit}}, {"spin_ns", spin_ns}});
    return spins;
  }

  /// One spin behind one unit: it is executed and counted in every arm, twice where its unit is copied, and
  /// changes nothing.
  void check_plant(const Workload& workload) {
    const std::string name = workload.facts.id + ": plants work and counts it";
    if (!side_.can("plant")) return not_run(name, "the engine does not offer it");
    if (!probed_ || !is_usable()) return not_run(name, "there is no graph to plant in");
    const core::WorkloadGraph* graph = &*probed_;
    expect_refused(workload.facts.id + ": refuses work behind a unit that is not there", "graph",
                   {{"workload", workload.to_json()},
                    {"probe", false},
                    {"units", groups_of(*graph)},
                    {"plant", {{{"unit", {0, 1 << 20}}, {"spin_ns", 1}}}}});
    std::vector<json> plain;
    std::vector<json> planted;
    const json spins = spins_behind(*graph, kPlantedSpinNs);
    for (const auto& [plant, blocks] : {std::pair{json(), &plain}, std::pair{spins, &planted}}) {
      if (Status status = measure_planted(workload, plant, *graph, *blocks); !status) {
        expect(name, false, status.error().message);
        return;
      }
    }
    const int64_t calls = graph->calls_of(spins.front()["unit"][0].get<int>());
    std::string wrong;
    for (size_t i = 0; i < planted.size(); ++i) {
      const int64_t expected = calls * (planted[i]["copy_ns"].is_null() ? 1 : 2);
      const json told = planted[i].value("planted", json());
      const bool is_counted = told.is_object() && told["spins"] == expected &&
                              told["spun_ns"].get<int64_t>() >= expected * kPlantedSpinNs;
      if (!is_counted)
        wrong = fmt::format("{}: {} for {} spins", planted[i]["arm"].dump(), told.dump(), expected);
      if (planted[i]["digests"] != plain[i]["digests"]) wrong = "it changes the logits";
    }
    expect(name, wrong.empty(), wrong.empty() ? fmt::format("{} spins a pass", calls) : wrong);
  }

  /// A pass of a baseline, a stamp and a stamped replay of everything, of those that the engine has.
  Status measure_planted(const Workload& workload, const json& plant, const core::WorkloadGraph& graph,
                         std::vector<json>& blocks) {
    json params{{"workload", workload.to_json()}, {"probe", false}, {"units", groups_of(graph)}};
    if (!plant.is_null()) params["plant"] = plant;
    if (const Result<json> reply = engine_->call("graph", params); !reply) return reply.error();
    std::vector<ArmPlan> arms = base_arms(side_.arm_kinds);
    for (ArmPlan& arm : replay_arms({"all", units_in_order(graph), 1.0}, side_.arm_kinds, 2, 1)) {
      for (AskedUnit& unit : arm.units) unit = {unit.unit, 1, "same", 1};
      if (arm.kind == "stamped_replay") arms.push_back(std::move(arm));
    }
    json asked = json::array();
    ScheduleEntry turn{{}, 1, false};
    for (const ArmPlan& arm : arms) {
      asked.push_back(arm.to_json(false));
      turn.arms.push_back(arm.id);
    }
    const std::string& id = workload.facts.id;
    const Result<json> prepared = engine_->call("prepare", {{"workload", id}, {"arms", asked}});
    if (!prepared) return prepared.error();
    const std::vector<ExpectedBlock> expected = expected_blocks({turn});
    const auto on_block = [&](const json& block) -> Status {
      Status status = check_block(block, id, expected[blocks.size()], graph.unit_count());
      blocks.push_back(block);
      return status;
    };
    size_t held = 0;
    const Result<json> reply =
        measure({{"workload", id}, {"schedule", to_json({turn})}}, {expected.size(), 0, on_block}, held);
    if (!reply) return reply.error();
    return blocks.size() == expected.size() ? Status{} : Status{Error::failure("a block is missing")};
  }

  void check_blocks(const Workload& workload, const core::WorkloadGraph& graph,
                    const std::vector<ArmPlan>& arms) {
    const std::string& id = workload.facts.id;
    // Two passes: an engine that can hold does so between them at the latest.
    ScheduleEntry turn{{}, 2, false, 0, 1};
    for (const ArmPlan& arm : arms) turn.arms.push_back(arm.id);
    std::vector<ScheduleEntry> schedule{turn, {{"baseline"}, 2, false}};
    if (side_.can("state_digest")) schedule.push_back({turn.arms, 1, true});
    const std::vector<ExpectedBlock> expected = expected_blocks(schedule);
    std::vector<json> blocks;
    const auto on_block = [&](const json& block) -> Status {
      Status status = check_block(block, id, expected[blocks.size()], graph.unit_count());
      blocks.push_back(block);
      return status;
    };
    const size_t holds = expected_holds(schedule, workload.steps());
    size_t held = 0;
    const Result<json> reply = measure({{"workload", id}, {"schedule", to_json(schedule)}},
                                       {expected.size(), holds, on_block}, held);
    const bool is_whole = reply.is_ok() && blocks.size() == expected.size();
    if (!expect(id + ": measures a block for every arm of a turn", is_whole,
                reply ? fmt::format("{} blocks", blocks.size()) : reply.error().message)) {
      return;
    }
    expect(id + ": holds after every burst", held == holds, fmt::format("{} of {} times", held, holds));
    check_sums(id, blocks);
    check_digests(id, blocks, workload);
  }

  Result<json> measure(json params, Expected expected, size_t& held) {
    if (Status status = engine_->begin("measure", std::move(params), std::move(expected)); !status)
      return status.error();
    while (true) {
      Result<std::optional<json>> reply = engine_->advance();
      if (!reply) return reply.error();
      if (reply->has_value()) return std::move(**reply);
      ++held;
    }
  }

  static int64_t stamped_sum(const json& block, size_t row) {
    int64_t sum = block["head_ns"][row].get<int64_t>() + block["tail_ns"][row].get<int64_t>();
    for (const char* table : {"unit_ns", "copy_ns"}) {
      if (block[table].is_null()) continue;
      for (const json& ns : block[table][row]) sum += ns.get<int64_t>();
    }
    return sum;
  }

  void check_sums(const std::string& id, const std::vector<json>& blocks) {
    int64_t worst_ns = 0;
    int stamped = 0;
    for (const json& block : blocks) {
      if (block["verify"] == true || block["head_ns"].is_null() || block["unit_ns"].is_null()) continue;
      ++stamped;
      size_t row = 0;
      for (const json& graph_ns : steps_of(block))
        worst_ns = std::max<int64_t>(worst_ns, std::abs(stamped_sum(block, row++) - graph_ns.get<int64_t>()));
    }
    const std::string name = id + ": head, units, copies and tail are the stamped step";
    if (stamped == 0) return not_run(name, "no arm is stamped");
    expect(name, worst_ns == 0, fmt::format("off by at most {} ns", worst_ns));
  }

  void check_digests(const std::string& id, const std::vector<json>& blocks, const Workload& workload) {
    const json rows = blocks.front()["digests"][blocks.front()["passes"][0]["digest"].get<size_t>()];
    const size_t expected = workload.facts.kind == core::WorkloadKind::kDecode ? workload.tokens.size() : 1;
    expect(id + ": digests every output row", rows.size() == expected,
           fmt::format("{} of {}", rows.size(), expected));
    std::string changed;
    std::string damaged;
    const json state = blocks.back()["state_digest"];
    for (const json& block : blocks) {
      for (const json& pass : block["passes"]) {
        const bool is_same =
            block["digests"][pass["digest"].get<size_t>()] == rows && block["logits"] == "ok";
        if (!is_same) changed = block["arm"];
      }
      if (block["verify"] == true && (block["state_digest"].is_null() || block["state_digest"] != state))
        damaged = block["arm"];
    }
    expect(id + ": every arm gives the baseline's logits", changed.empty(),
           changed.empty() ? "same digests" : changed + " does not");
    const std::string name = id + ": every arm leaves the baseline's KV and state";
    if (!side_.can("state_digest")) return not_run(name, "the engine has no state_digest");
    expect(name, damaged.empty(), damaged.empty() ? "same digests" : damaged + " does not");
  }

  void check_tokenize() {
    if (!side_.can("tokenize") || !is_usable()) return not_run("tokenizes", "the engine does not offer it");
    const Result<json> reply = engine_->call("tokenize", {{"text", "hello"}});
    const json tokens = reply && reply->is_object() ? reply->value("tokens", json()) : json();
    // A model without a vocabulary of texts (a skeleton) may refuse, if it says why.
    expect("tokenizes", tokens.is_array() || (!reply && !engine_->is_gone()),
           reply ? tokens.dump() : reply.error().message);
  }

  void check_logits() {
    if (!side_.can("logits") || !is_usable()) return not_run("gives logits", "the engine does not offer it");
    const Result<json> reply =
        engine_->call("logits", {{"tokens", seeded_ids(2, 8, vocab_tokens_)}, {"rows", 3}});
    const json rows = reply && reply->is_object() ? reply->value("rows", json()) : json();
    expect("gives logits", rows.is_array() && rows.size() == 3,
           reply ? fmt::format("{} rows", rows.size()) : reply.error().message);
  }

  void check_shutdown() {
    if (!is_usable()) return not_run("exits with 0 after shutdown", "the engine is gone");
    const Status status = engine_->shutdown();
    expect("exits with 0 after shutdown", status.is_ok(), status ? "" : status.error().message);
    engine_.reset();
  }

  void check_socket_close() {
    const std::string name = "exits when its socket closes";
    Result<Engine> engine = Engine::start(options_.program, context_);
    if (!engine) return not_run(name, engine.error().message);
    const Result<json> reply = engine->call("initialize", {{"protocol", kProtocolVersion}});
    if (!reply) return not_run(name, reply.error().message);
    const auto end = engine->close_socket_and_wait(kEndLimitNs);
    expect(name, end.has_value() && !end->by_signal,
           end ? "it " + end->describe() : "it still runs after 10 s");
  }

  const ConformanceOptions& options_;
  const EngineContext& context_;
  ConformanceReport report_;
  Side side_;
  std::optional<Engine> engine_;
  bool is_initialized_ = false;
  bool is_loaded_ = false;
  int64_t vocab_tokens_ = 1;
  std::optional<core::WorkloadGraph> probed_;  ///< of the workload checked last
};

}  // namespace

bool ConformanceReport::conforms() const {
  bool has_held = false;
  for (const ConformanceCheck& check : checks) {
    if (check.status == ConformanceStatus::kFailed) return false;
    has_held = has_held || check.status == ConformanceStatus::kHeld;
  }
  return has_held;
}

Result<ConformanceReport> check_conformance(const ConformanceOptions& options, const EngineContext& context) {
  try {
    return Suite(options, context).run();
  } catch (const json::exception& error) {
    return Error::failure(
        fmt::format("{}: a reply does not have the protocol's form: {}", options.program.name, error.what()));
  }
}

}  // namespace opledger::session
