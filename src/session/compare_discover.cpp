// The launch in which nothing is timed: facts, answers, graphs. It may crash while probing, and is thrown
// away.
#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <limits>
#include <utility>

#include "core/record/write.h"
#include "platform/machine.h"
#include "platform/working_set.h"
#include "session/answers.h"
#include "session/compare_session.h"
#include "session/model_facts.h"

namespace opledger::session {
namespace {

using nlohmann::json;

constexpr int64_t kLogitTokens = 64;
constexpr int64_t kLogitRows = 32;

core::EngineFacts engine_facts(const Side& side) {
  core::EngineFacts facts;
  facts.side = side.side;
  facts.spec = side.spec.text;
  facts.name = side.program.name;
  facts.initialize_json = side.initialize.dump();
  facts.load_params_json = side.load_params.dump();
  facts.load_json = side.load.dump();
  for (const std::string& entry : platform::engine_environment()) {
    const size_t equals = entry.find('=');
    facts.environment[entry.substr(0, equals)] = equals == std::string::npos ? "" : entry.substr(equals + 1);
  }
  return facts;
}

core::ModelLine model_line(const Side& side) {
  return {side.side, side.settings.model_path, static_cast<int64_t>(side.model.file_bytes),
          core_facts_of(side.model)};
}

Result<std::string> text_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad() || text.empty()) {
    return Error::bad_input(
        fmt::format("--prompt-file {}: cannot be read or is empty; give a text file", path));
  }
  return text;
}

}  // namespace

Status CompareSession::write_facts() {
  if (options_.largest_probe_bytes <= 0) return {};
  progress_.show("measuring this machine's caches");
  platform::WorkingSetOptions options;
  options.largest_bytes = options_.largest_probe_bytes;
  options.threads = std::max(sides_[0].settings.threads, sides_[1].settings.threads);
  if (options_.budget_s < 30) options.time_per_size_ns = 10'000'000;
  const platform::WorkingSetCurve curve = platform::probe_working_set(options, clock_);
  core::CacheProbe cache;
  for (const platform::WorkingSetPoint& point : curve.points) {
    cache.curve.push_back({point.bytes, static_cast<double>(point.read_bytes_per_s)});
  }
  cache.knee_bytes = curve.knee_bytes;
  return log_.append(core::record_line(cache));
}

Status CompareSession::make_ids(Side& side) {
  if (!ids_.empty()) return {};
  const int64_t wanted = std::max(needed_tokens_, kLogitTokens);
  if (!options_.prompt_path) {
    ids_ = seeded_ids(options_.seed, wanted, side.load.at("model").at("vocab_tokens"));
    token_source_ = "seeded ids";
  } else {
    Result<std::string> text = text_of_file(*options_.prompt_path);
    if (!text) return text.error();
    Result<json> reply = side.engine->call("tokenize", {{"text", *text}});
    if (!reply) return reply.error();
    for (const json& id : reply->value("tokens", json::array())) ids_.push_back(id.get<int64_t>());
    if (static_cast<int64_t>(ids_.size()) < needed_tokens_) {
      return Error::bad_input(
          fmt::format("--prompt-file {}: it has {} tokens, the workloads need {}; give a longer text",
                      *options_.prompt_path, ids_.size(), needed_tokens_));
    }
    ids_.resize(static_cast<size_t>(std::min<int64_t>(wanted, static_cast<int64_t>(ids_.size()))));
    token_source_ = *options_.prompt_path;
  }
  workloads_ = make_workloads(options_.workloads, ids_, token_source_);
  for (const Workload& workload : workloads_) {
    if (Status status = log_.append(core::record_line(workload.facts)); !status) return status;
  }
  return {};
}

Status CompareSession::take_logits(Side& side, std::vector<std::vector<float>>& logits) {
  if (!side.can("logits")) return {};
  const size_t count = std::min(ids_.size(), static_cast<size_t>(kLogitTokens));
  const std::vector<int64_t> tokens(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(count));
  const auto rows = std::min<int64_t>(kLogitRows, static_cast<int64_t>(count));
  Result<json> reply = side.engine->call("logits", {{"tokens", tokens}, {"rows", rows}});
  if (!reply) return reply.error();
  const json vocab = reply->is_object() ? reply->value("vocab_tokens", json()) : json();
  if (!vocab.is_number_integer() || vocab.get<int64_t>() < 1) {
    return Error::failure(fmt::format("{}: its reply to logits has no \"vocab_tokens\"", side.program.name));
  }
  for (const json& row : reply->value("rows", json::array())) {
    Result<std::vector<float>> decoded = decode_logits(row.is_string() ? row.get<std::string>() : "", vocab);
    if (!decoded) return Error::failure(fmt::format("{}: {}", side.program.name, decoded.error().message));
    logits.push_back(std::move(*decoded));
  }
  return {};
}

Status CompareSession::write_agreement(const std::array<std::vector<std::vector<float>>, 2>& logits) {
  core::LogitsFacts facts;
  facts.rows = static_cast<int64_t>(std::min(logits[0].size(), logits[1].size()));
  if (facts.rows == 0) return {};
  if (const std::optional<AnswerAgreement> agreement = compare_answers(logits[0], logits[1])) {
    facts.top1_agreement_ratio = agreement->top1_agreement_ratio;
    facts.kl_nats_mean = agreement->kl_nats_mean;
  }
  // All workloads start with the same tokens: one comparison answers for each of them.
  for (const Workload& workload : workloads_) {
    facts.workload = workload.facts.id;
    if (Status status = log_.append(core::record_line(facts)); !status) return status;
  }
  return {};
}

Result<json> CompareSession::probe_graph(Side& side, const Workload& workload) {
  const bool probe = side.may_probe && side.can("probe");
  Result<json> reply = ask_graph(side, workload, probe, json());
  if (reply || !probe || !side.engine->is_gone() || reply.error().kind != Error::Kind::kFailure) return reply;
  // Poisoned data may crash an engine. What it is without being looked at closely can still be measured.
  if (Status status = note("engine_died", &side, "while probing: " + reply.error().message); !status) {
    return status.error();
  }
  side.may_probe = false;
  if (Status status = start_and_load(side, context_tokens_, context()); !status) return status.error();
  return ask_graph(side, workload, false, json());
}

Status CompareSession::describe_workload(Side& side, size_t w) {
  progress_.show(fmt::format("{}: looking at the graph of {}", side.program.name, workloads_[w].facts.id));
  const int64_t asked_ns = clock_.now_ns();
  Result<json> reply = probe_graph(side, workloads_[w]);
  if (!reply) return reply.error();
  SideWorkload& known = side.workloads[w];
  // Finding the graph takes a handful of passes: a first idea of what a pass takes, mended by the first
  // group.
  known.pass_ns = static_cast<double>(clock_.now_ns() - asked_ns) / (side.may_probe ? 3.0 : 1.5);
  known.graph_text = reply->dump();
  Result<core::WorkloadGraph> graph = core::parse_workload_graph(known.graph_text);
  if (!graph) {
    return Error::failure(
        fmt::format("{}: its reply to graph cannot be used: {}", side.program.name, graph.error().message));
  }
  known.graph = std::move(*graph);
  known.given_units = groups_of(known.graph);
  known.arms = base_arms(side.arm_kinds);
  if (options_.totals_only)
    std::erase_if(known.arms, [](const ArmPlan& arm) { return arm.kind != "baseline"; });
  core::GraphFacts facts;
  facts.side = side.side;
  facts.workload = workloads_[w].facts.id;
  facts.graph_json = known.graph_text;
  return log_.append(core::record_line(facts));
}

Status CompareSession::describe(Side& side) {
  side.workloads.assign(workloads_.size(), SideWorkload{});
  for (size_t w = 0; w < workloads_.size(); ++w) {
    if (Status status = describe_workload(side, w); !status) return status;
  }
  return {};
}

Status CompareSession::discover(Side& side, std::vector<std::vector<float>>& logits) {
  progress_.show(fmt::format("{}: starting and loading {}", side.program.name, side.settings.model_path));
  const int64_t started_ns = clock_.now_ns();
  if (Status status = start_and_load(side, context_tokens_, context()); !status) return status;
  side.launch_ns = static_cast<double>(clock_.now_ns() - started_ns);
  const std::string family = side.initialize.at("engine").at("family");
  Result<std::shared_ptr<const core::RuleSet>> rules = options_.rules_of(family);
  if (!rules) return rules.error();
  side.rules = *rules;
  if (Status status = log_.append(core::record_line(engine_facts(side))); !status) return status;
  if (Status status = log_.append(core::record_line(model_line(side))); !status) return status;
  if (Status status = make_ids(side); !status) return status;
  if (Status status = take_logits(side, logits); !status) return status;
  if (Status status = describe(side); !status) return status;
  return close(side);
}

Status CompareSession::scope_all() {
  std::vector<core::ScopedInput> inputs;
  for (size_t w = 0; w < workloads_.size(); ++w) {
    for (const Side& side : sides_) {
      inputs.push_back({&side.workloads[w].graph, side.rules.get(), side.program.name});
    }
  }
  Result<core::Scoping> scoping = core::scope_units(inputs, options_.rows);
  if (!scoping) return scoping.error();
  for (const core::Scope& scope : scoping->scopes) scope_names_.push_back(scope.name);
  for (size_t w = 0; w < workloads_.size(); ++w) {
    for (size_t s = 0; s < sides_.size(); ++s) {
      sides_[s].workloads[w].unit_scope = scoping->unit_scope[w * sides_.size() + s];
    }
  }
  return {};
}

Status CompareSession::plant_work() {
  if (!options_.planted) return {};
  for (Side& side : sides_) {
    if (!side.can("plant"))
      return Error::bad_input(fmt::format(
          "{}: it cannot plant work (capabilities.plant, docs/protocol.md); if this opledger built "
          "its adapter, add the engine again",
          side.program.name));
    for (size_t w = 0; w < workloads_.size(); ++w) {
      if (Status status = plant_work(side, w); !status) return status;
    }
  }
  return {};
}

Status CompareSession::plant_work(Side& side, size_t w) {
  SideWorkload& known = side.workloads[w];
  const std::vector<core::UnitName> all = units_in_order(known.graph);
  std::vector<core::UnitName> units;
  for (size_t u = 0; u < all.size(); ++u) {
    if (scope_names_[static_cast<size_t>(known.unit_scope[u])] == options_.planted->row)
      units.push_back(all[u]);
  }
  if (units.empty())
    return Error::bad_input(fmt::format("{}: {} has no row {} to plant work in", side.program.name,
                                        workloads_[w].facts.id, options_.planted->row));
  const std::vector<PlantedSpin> spins = spread_spins(known.graph, units, options_.planted->pass_ns);
  const bool is_slow = side.side == core::Side::kB;
  known.planted = plant_request(spins, is_slow);
  return note("note", &side,
              fmt::format("planted in {} of {}: spins of {} ns behind {} of {} units", options_.planted->row,
                          side.letter(), is_slow ? spins.front().spin_ns : 0, spins.size(), units.size()),
              workloads_[w].facts.id);
}

}  // namespace opledger::session
