// Requests in, planted answers out; the faults live in one function.
#include "fake_engine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <numeric>
#include <set>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace opledger::fake {
namespace {

using nlohmann::json;

constexpr int64_t kEdgeNs = 1000;  // head and tail of a stamped pass

const std::vector<std::string> kFaults{"broken_fusion", "changed_result", "idle_copies", "warm_copies"};

const json& required(const json& params, const char* key, json::value_t type) {
  if (!params.contains(key))
    throw Refusal{-32000, std::string("the parameter ") + key + " is missing; send it", "bad_input"};
  const json& value = params.at(key);
  const bool fits =
      value.type() == type || (type == json::value_t::number_integer && value.is_number_integer());
  if (!fits) throw Refusal{-32000, std::string("the parameter ") + key + " has the wrong type", "bad_input"};
  return value;
}

std::string hex_of(uint64_t value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%016llx%016llx",
                static_cast<unsigned long long>(value * 0x9e3779b97f4a7c15ULL),
                static_cast<unsigned long long>(value));
  return text.data();
}

uint64_t hash_of(const std::string& text) {
  uint64_t hash = 1469598103934665603ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::string base64_of(const std::string& bytes) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    const size_t have = std::min<size_t>(3, bytes.size() - i);
    for (size_t j = 0; j < 3; ++j)
      group = (group << 8) | (j < have ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    for (size_t j = 0; j < 4; ++j) text += j <= have ? kLetters[(group >> (18 - 6 * j)) & 63] : '=';
  }
  return text;
}

}  // namespace

FakeEngine::FakeEngine(Script script, int socket_fd)
    : script_(std::move(script)),
      socket_fd_(socket_fd),
      random_(script_.seed * 7919 + static_cast<uint64_t>(::getpid())) {}

void FakeEngine::send(const std::string& text) const {
  size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t now = ::send(socket_fd_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (now <= 0) ::_exit(0);
    sent += static_cast<size_t>(now);
  }
}

std::optional<json> FakeEngine::read_message() {
  std::array<char, 65536> piece{};
  size_t end = buffer_.find('\n');
  while (end == std::string::npos) {
    const ssize_t got = ::recv(socket_fd_, piece.data(), piece.size(), 0);
    if (got <= 0) return std::nullopt;
    buffer_.append(piece.data(), static_cast<size_t>(got));
    end = buffer_.find('\n');
  }
  json message = json::parse(buffer_.substr(0, end));
  buffer_.erase(0, end + 1);
  return message;
}

void FakeEngine::hold() {
  send(R"({"jsonrpc":"2.0","method":"hold","params":{}})"
       "\n");
  const std::optional<json> answer = read_message();
  if (!answer || answer->value("method", "") != "continue") ::_exit(8);
}

int FakeEngine::serve() {
  while (true) {
    const std::optional<json> message = read_message();
    if (!message) return 0;
    const json& request = *message;
    const std::string method = request.at("method");
    json reply{{"jsonrpc", "2.0"}, {"id", request.at("id")}};
    try {
      misbehave(method, request.at("params"), reply);
      reply["result"] = answer(method, request.at("params"));
    } catch (const Refusal& refusal) {
      reply["error"] = {
          {"code", refusal.code}, {"message", refusal.message}, {"data", {{"kind", refusal.kind}}}};
    }
    send(reply.dump() + "\n");
    if (method == "shutdown") return 0;
  }
}

void FakeEngine::misbehave(const std::string& method, const json& params, json& reply) {
  const int now = ++seen_[method];
  for (const Fault& fault : script_.faults) {
    if (fault.method != method || fault.at != now) continue;
    std::fprintf(stderr, "fake engine: %s at %s %d\n", fault.act.c_str(), method.c_str(), now);
    std::fflush(stderr);
    if (fault.act == "die") ::raise(SIGKILL);
    if (fault.act == "exit") ::_exit(7);
    if (fault.act == "exit_on_probe" && params.value("probe", false)) ::_exit(9);
    if (fault.act == "hang") {
      while (true) ::pause();
    }
    if (fault.act == "garbage") send("this is no JSON\n");
    if (fault.act == "wrong_id") reply["id"] = 424242;
    if (fault.act == "error") throw Refusal{-32000, "the script says no", "failure"};
    if (fault.act == "environment")
      throw Refusal{-32000, "the script says that memory is short", "environment"};
    if (fault.act == "flood_line") {
      while (true) send(std::string(1 << 20, 'x'));
    }
    if (fault.act == "flood_holds") {
      while (true) hold();
    }
    if (fault.act == "flood_blocks") {
      while (true)
        send(R"({"jsonrpc":"2.0","method":"block","params":{}})"
             "\n");
    }
  }
}

json FakeEngine::answer(const std::string& method, const json& params) {
  if (method == "initialize") return initialize(params);
  if (method == "estimate") {
    required(params, "model_path", json::value_t::string);
    return {{"memory_bytes", script_.memory_bytes}, {"how", "as scripted"}};
  }
  if (method == "load") return load(params);
  if (method == "tokenize") {
    json tokens = json::array();
    for (const char c : required(params, "text", json::value_t::string).get<std::string>()) {
      tokens.push_back(static_cast<unsigned char>(c) % script_.vocab_tokens);
    }
    return {{"tokens", tokens}};
  }
  if (method == "graph") return graph(params);
  if (method == "prepare") return prepare(params);
  if (method == "measure") return measure(params);
  if (method == "logits") return logits(params);
  if (method == "shutdown") return json::object();
  throw Refusal{-32601, "no method is called " + method, "bad_input"};
}

json FakeEngine::initialize(const json& params) const {
  const std::string asked = required(params, "protocol", json::value_t::string);
  if (asked != script_.protocol && script_.protocol == "2") {
    throw Refusal{-32000, "this engine speaks protocol 2, not " + asked + "; use a matching opledger",
                  "bad_input"};
  }
  json reply{{"protocol", script_.protocol},
             {"adapter", {{"name", "fake"}, {"version", "1"}}},
             {"engine",
              {{"family", script_.family},
               {"version", "scripted"},
               {"build", json::object()},
               {"libraries", json::array()}}},
             {"device", {{"kind", "cpu"}, {"name", "none"}, {"isa", json::array()}, {"cores", 1}}},
             {"capabilities",
              {{"arms", {"baseline", "empty", "price", "stamp", "replay", "stamped_replay"}},
               {"weights", {"same", "sibling", "shadow"}},
               {"workloads", {"prefill", "decode"}},
               {"tokenize", true},
               {"logits", true},
               {"state_digest", true},
               {"probe", true},
               {"routing", false},
               {"standalone", false},
               {"timeline", false}}}};
  if (script_.cannot_plant) return reply;
  reply["capabilities"]["plant"] = true;
  reply["capabilities"]["faults"] = kFaults;
  return reply;
}

void FakeEngine::plant_fault(const std::string& fault) {
  if (std::count(kFaults.begin(), kFaults.end(), fault) == 0)
    throw Refusal{-32000, "unknown fault " + fault, "bad_input"};
  if (script_.ignores_faults) return;
  if (fault == "idle_copies") script_.copy_ratio = 0;
  if (fault == "warm_copies") script_.copy_ratio = 0.7;
  if (fault == "changed_result") script_.stamp_changes_digest = true;
  if (fault == "broken_fusion") script_.splits_units = true;
}

json FakeEngine::load(const json& params) {
  const std::string path = required(params, "model_path", json::value_t::string);
  const int64_t context = required(params, "context_tokens", json::value_t::number_integer);
  const json threads = required(params, "threads", json::value_t::number_integer);
  const json flags = required(params, "flags", json::value_t::object);
  if (!std::filesystem::is_regular_file(path))
    throw Refusal{-32000, path + ": no such model file; check -m", "bad_input"};
  for (const auto& [name, value] : flags.items()) {
    if (name != "fa" && name != "ctk")
      throw Refusal{-32000, "unknown flag -" + name + "; accepted: -fa, -ctk", "bad_input"};
  }
  ubatch_tokens_ = required(params, "ubatch_tokens", json::value_t::number_integer);
  if (params.contains("fault")) plant_fault(params.at("fault"));
  is_loaded_ = true;
  return {{"model",
           {{"architecture", script_.architecture},
            {"layers", script_.layers},
            {"vocab_tokens", script_.vocab_tokens}}},
          {"context_tokens", context},
          {"threads", threads},
          {"flags", flags}};
}

json FakeEngine::graph(const json& params) {
  const json& asked = required(params, "workload", json::value_t::object);
  if (!is_loaded_) throw Refusal{-32000, "no model is loaded; send load first", "bad_input"};
  Workload workload;
  workload.id = asked.at("id");
  workload.is_decode = asked.at("kind") == "decode";
  workload.tokens = static_cast<int64_t>(asked.at("tokens").size());
  const int64_t per_call = workload.is_decode ? 1 : std::min(workload.tokens, ubatch_tokens_);
  workload.calls = (workload.tokens + per_call - 1) / per_call;
  const json units = params.value("units", json());
  bool is_fused = params.value("probe", false);
  if (units.is_array()) {
    is_fused = script_.splits_units || std::any_of(units.begin(), units.end(),
                                                   [](const json& one) { return !one.at("groups").empty(); });
  }
  const int64_t cells =
      workload.tokens + (workload.is_decode ? static_cast<int64_t>(asked.at("prompt").size()) : 0);
  workload.graph = build_graph(script_, per_call, cells, is_fused);
  workload.signature = hex_of(hash_of(workload.graph.nodes.dump()));
  for (const json& entry : params.value("plant", json::array())) {
    const int unit = entry.at("unit").at(1);
    if (entry.at("unit").at(0) != 0 || unit < 0 || static_cast<size_t>(unit) >= workload.graph.units.size())
      throw Refusal{-32000, "plant: no such unit", "bad_input"};
    workload.planted[unit] = entry.at("spin_ns");
  }
  json unit_list = json::array();
  for (const FakeUnit& unit : workload.graph.units) {
    const char* why = unit.nodes.size() == 1 ? "single" : (units.is_array() ? "given" : "fused");
    unit_list.push_back({{"nodes", unit.nodes}, {"why", why}});
  }
  json reply{{"workload", workload.id},
             {"calls", std::vector<int>(static_cast<size_t>(workload.calls), 0)},
             {"graphs",
              {{{"signature", workload.signature},
                {"nodes", workload.graph.nodes},
                {"tensors", workload.graph.tensors},
                {"units", unit_list}}}},
             {"probe", {{"ran", params.value("probe", false)}, {"reason", nullptr}}},
             {"routing", json::array()}};
  workloads_[workload.id] = std::move(workload);
  return reply;
}

FakeEngine::Workload& FakeEngine::workload_named(const json& params) {
  const std::string id = required(params, "workload", json::value_t::string);
  const auto found = workloads_.find(id);
  if (found == workloads_.end())
    throw Refusal{-32000, "the workload " + id + " has no graph yet; send graph first", "bad_input"};
  return found->second;
}

json FakeEngine::prepare_arm(const Workload& workload, const json& asked, Arm& arm) const {
  static const std::set<std::string> kKinds{"baseline", "empty",  "price",
                                            "stamp",    "replay", "stamped_replay"};
  arm.kind = required(asked, "kind", json::value_t::string);
  if (kKinds.count(arm.kind) == 0) throw Refusal{-32000, "unknown arm kind " + arm.kind, "bad_input"};
  json units = json::array();
  json refused = json::array();
  for (const json& entry : asked.value("units", json::array())) {
    const auto index = static_cast<size_t>(entry.at("unit").at(1).get<int>());
    if (entry.at("unit").at(0) != 0 || index >= workload.graph.units.size())
      throw Refusal{-32000, "no such unit", "bad_input"};
    const int id = static_cast<int>(index);
    if (std::count(script_.refused_units.begin(), script_.refused_units.end(), id) > 0) {
      refused.push_back({{"unit", entry.at("unit")}, {"reason", "the script refuses it"}});
      continue;
    }
    const FakeUnit& unit = workload.graph.units[index];
    json weights = entry.at("weights");
    if (weights == "sibling" && (unit.layer < 0 || unit.weight_bytes == 0 || script_.layers < 2))
      weights = "same";
    if (weights == "shadow" && unit.weight_bytes == 0) weights = "same";
    arm.units[id] = {entry.at("copies"), weights};
    units.push_back(
        {{"unit", entry.at("unit")},
         {"weights", weights},
         {"read_bytes", unit.weight_bytes},
         {"reuse_distance_bytes", weights == "same" ? 0 : unit.weight_bytes * script_.layers / 2}});
  }
  return {{"id", asked.at("id")},
          {"units", units},
          {"refused", refused},
          {"scratch_bytes", 4096},
          {"shadow_bytes", 0}};
}

json FakeEngine::prepare(const json& params) {
  Workload& workload = workload_named(params);
  workload.arms.clear();
  json arms = json::array();
  for (const json& asked : required(params, "arms", json::value_t::array)) {
    Arm arm;
    arms.push_back(prepare_arm(workload, asked, arm));
    workload.arms[asked.at("id")] = std::move(arm);
  }
  return {{"arms", arms}};
}

double FakeEngine::planted_ns(const Workload& workload, const FakeUnit& unit) const {
  double total = 0;
  for (const std::string& key : {unit.role, unit.op, std::string("default")}) {
    if (const auto found = script_.ns_per_token.find(key); found != script_.ns_per_token.end()) {
      total = found->second;
      break;
    }
  }
  return total * static_cast<double>(workload.tokens);
}

int64_t FakeEngine::spun_ns(const Workload& workload, int unit) const {
  const auto planted = workload.planted.find(unit);
  if (planted == workload.planted.end() || script_.ignores_plant) return 0;
  return planted->second * workload.calls;
}

json FakeEngine::spins_of(const Workload& workload, const Arm& arm, int passes) const {
  int64_t spins = script_.miscounts_plant ? 1 : 0;
  int64_t total_ns = 0;
  for (const auto& [unit, spin_ns] : workload.planted) {
    const auto copied = arm.units.find(unit);
    const int64_t times =
        passes * workload.calls * (1 + (copied == arm.units.end() ? 0 : copied->second.copies));
    spins += times;
    total_ns += times * spin_ns;
  }
  return {{"spins", spins}, {"spun_ns", total_ns}, {"late_spins", 0}, {"late_ns", 0}};
}

FakeEngine::PassTimes FakeEngine::time_pass(const Workload& workload, const Arm& arm) {
  std::normal_distribution<double> noise(1.0, script_.noise_ratio);
  PassTimes times;
  int64_t sum_ns = 0;
  const bool is_stamped = arm.kind == "stamp" || arm.kind == "stamped_replay";
  const int64_t price_ns = script_.price_ns * workload.calls;
  for (size_t i = 0; i < workload.graph.units.size(); ++i) {
    const double planted = planted_ns(workload, workload.graph.units[i]);
    const int64_t spin_ns = spun_ns(workload, static_cast<int>(i));
    const auto work_ns = static_cast<int64_t>(planted * std::max(0.1, noise(random_))) + spin_ns;
    int64_t copies_ns = 0;
    if (const auto copied = arm.units.find(static_cast<int>(i)); copied != arm.units.end()) {
      copies_ns = static_cast<int64_t>(planted * copied->second.copies * script_.copy_ratio) +
                  spin_ns * copied->second.copies;
      if (is_stamped) copies_ns += price_ns;
    }
    const int64_t unit_ns = arm.kind == "price" ? price_ns : work_ns + (is_stamped ? price_ns : 0);
    times.unit_ns.push_back(unit_ns);
    times.copy_ns.push_back(copies_ns);
    sum_ns += copies_ns + (arm.kind == "price" ? work_ns + 2 * price_ns : unit_ns) +
              (arm.kind == "empty" ? price_ns : 0);
  }
  const double overlap = is_stamped ? 1.0 : script_.overlap_ratio;
  times.graph_ns = static_cast<int64_t>(static_cast<double>(sum_ns) * overlap) + 2 * kEdgeNs;
  return times;
}

bool FakeEngine::changes_digest(const Workload& workload, const Arm& arm) const {
  if (arm.kind == "stamp" && script_.stamp_changes_digest) return true;
  const bool is_crowded = workload.arms.size() > 2;
  return arm.holds_any(script_.breaking_units) || (is_crowded && arm.holds_any(script_.crowded_units));
}

/// Of equal steps, the last one with what is left.
int64_t share_of(int64_t ns, int64_t step, int64_t steps) {
  return ns / steps + (step + 1 == steps ? ns % steps : 0);
}

int64_t sum_of(const std::vector<int64_t>& times_ns) {
  return std::accumulate(times_ns.begin(), times_ns.end(), int64_t{0});
}

std::vector<int64_t> share_of(const std::vector<int64_t>& units_ns, int64_t step, int64_t steps) {
  std::vector<int64_t> shares;
  for (const int64_t ns : units_ns) shares.push_back(share_of(ns, step, steps));
  return shares;
}

json FakeEngine::block_of(const Workload& workload, const std::string& arm_id, int passes, bool verify) {
  const auto found = workload.arms.find(arm_id);
  if (found == workload.arms.end())
    throw Refusal{-32000, "the arm " + arm_id + " is not prepared", "bad_input"};
  const Arm& arm = found->second;
  const bool is_stamped = arm.kind == "stamp" || arm.kind == "stamped_replay";
  const bool has_units = is_stamped || arm.kind == "price";
  json pass_list = json::array();
  std::vector<std::vector<int64_t>> unit_ns;
  std::vector<std::vector<int64_t>> copy_ns;
  std::vector<int64_t> heads;  // and tails
  const int64_t steps = workload.is_decode ? workload.tokens : 1;
  const int64_t started_ns = monotonic_ns();
  for (int i = 0; i < passes; ++i) {
    const PassTimes times = time_pass(workload, arm);
    std::vector<int64_t> graph_ns;
    for (int64_t step = 0; step < steps; ++step) {
      unit_ns.push_back(share_of(times.unit_ns, step, steps));
      copy_ns.push_back(share_of(times.copy_ns, step, steps));
      heads.push_back(share_of(kEdgeNs, step, steps));
      // The parts of a stamped step add up to it, however each is rounded.
      graph_ns.push_back(is_stamped ? sum_of(unit_ns.back()) + sum_of(copy_ns.back()) + 2 * heads.back()
                                    : share_of(times.graph_ns, step, steps));
    }
    pass_list.push_back({{"wall_ns", times.graph_ns + script_.outside_ns},
                         {"graph_ns", times.graph_ns},
                         {"instrument_ns", arm.kind == "baseline" ? 0 : 500},
                         {"step_graph_ns", graph_ns},
                         {"digest", 0}});
  }
  std::vector<std::string> rows;
  const int64_t row_count = workload.is_decode ? workload.tokens : 1;
  for (int64_t row = 0; row < row_count; ++row) {
    rows.push_back(hex_of(hash_of(workload.id) + static_cast<uint64_t>(row) +
                          (changes_digest(workload, arm) ? 1000 : 0)));
  }
  const bool is_damaged =
      (script_.state_changes && !arm.units.empty()) || arm.holds_any(script_.damaging_units);
  json block{{"workload", workload.id},
             {"arm", arm_id},
             {"verify", verify},
             {"passes", pass_list},
             {"digests", {rows}},
             {"logits", "ok"},
             {"unit_ns", has_units ? json(unit_ns) : json()},
             {"head_ns", is_stamped ? json(heads) : json()},
             {"tail_ns", is_stamped ? json(heads) : json()},
             {"copy_ns", arm.kind == "stamped_replay" ? json(copy_ns) : json()},
             {"state_digest", verify ? json(hex_of(is_damaged ? 2 : 1)) : json()},
             {"threads", {{{"cpu_ns", 1000}, {"run_delay_ns", 0}}}},
             {"voluntary_switches", 0},
             {"involuntary_switches", 0},
             {"started_ns", started_ns},
             {"ended_ns", std::max(monotonic_ns(), started_ns + 1)},
             {"elapsed_ns", 1}};
  if (!workload.planted.empty()) block["planted"] = spins_of(workload, arm, passes);
  return block;
}

json FakeEngine::measure(const json& params) {
  const Workload& workload = workload_named(params);
  int blocks = 0;
  for (const json& entry : required(params, "schedule", json::value_t::array)) {
    const bool holds = !entry.value("verify", false) && !script_.never_holds;
    const int64_t burst_steps = holds ? entry.value("burst_steps", 0) : 0;
    const int64_t steps = entry.at("passes").get<int64_t>() * (workload.is_decode ? workload.tokens : 1);
    for (int64_t step = burst_steps; burst_steps > 0 && step < steps; step += burst_steps) hold();
    for (const json& arm : required(entry, "arms", json::value_t::array)) {
      const json block = block_of(workload, arm, entry.at("passes"), entry.value("verify", false));
      send(json{{"jsonrpc", "2.0"}, {"method", "block"}, {"params", block}}.dump() + "\n");
      ++blocks;
    }
  }
  return {{"blocks", blocks}};
}

json FakeEngine::logits(const json& params) const {
  required(params, "tokens", json::value_t::array);
  const int64_t rows = required(params, "rows", json::value_t::number_integer);
  json encoded = json::array();
  for (int64_t row = 0; row < rows; ++row) {
    std::string bytes;
    for (int64_t id = 0; id < script_.vocab_tokens; ++id) {
      const auto value = static_cast<float>(std::sin(static_cast<double>(id * 7 + row)) +
                                            script_.logit_shift * static_cast<double>(id % 3));
      std::array<char, sizeof value> raw{};
      std::memcpy(raw.data(), &value, sizeof value);
      bytes.append(raw.data(), raw.size());
    }
    encoded.push_back(base64_of(bytes));
  }
  return {{"vocab_tokens", script_.vocab_tokens}, {"rows", encoded}};
}

}  // namespace opledger::fake
