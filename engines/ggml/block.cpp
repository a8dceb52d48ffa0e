#include "engines/ggml/block.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <sys/stat.h>

namespace opledger::ggml {
namespace {

using Json = nlohmann::json;

Result<ArmKind> kind_of(const std::string& name) {
  static const std::map<std::string, ArmKind> kinds{{"baseline", ArmKind::kBaseline},
                                                    {"unhooked", ArmKind::kUnhooked},
                                                    {"empty", ArmKind::kEmpty},
                                                    {"price", ArmKind::kPrice},
                                                    {"stamp", ArmKind::kStamp},
                                                    {"replay", ArmKind::kReplay},
                                                    {"stamped_replay", ArmKind::kStampedReplay}};
  const auto found = kinds.find(name);
  if (found == kinds.end())
    return Error::bad_input("arm kind " + name + " is not one that this engine offers");
  return found->second;
}

Result<WeightChoice> weights_of(const std::string& name) {
  if (name == "same") return WeightChoice::kSame;
  if (name == "sibling") return WeightChoice::kSibling;
  if (name == "shadow") return WeightChoice::kShadow;
  return Error::bad_input("weights " + name + ": accepted are same, sibling and shadow");
}

const char* name_of(WeightChoice weights) {
  switch (weights) {
    case WeightChoice::kSibling:
      return "sibling";
    case WeightChoice::kShadow:
      return "shadow";
    case WeightChoice::kSame:
      break;
  }
  return "same";
}

Result<UnitReplay> parse_replay(const Workload& workload, const Json& request, int& graph) {
  graph = request.at("unit").at(0).get<int>();
  UnitReplay replay;
  replay.unit = request.at("unit").at(1).get<int>();
  replay.copies = request.value("copies", 1);
  replay.stride = request.value("stride", 1);
  if (!workload.has_unit(graph, replay.unit)) {
    return Error::bad_input("unit " + request.at("unit").dump() + " does not exist in workload " +
                            workload.id);
  }
  if (replay.copies < 1 || replay.copies > 64) return Error::bad_input("copies must be between 1 and 64");
  const Result<WeightChoice> weights = weights_of(request.value("weights", "same"));
  if (!weights) return weights.error();
  replay.weights = *weights;
  return replay;
}

/// Bytes that a unit reads in one execution.
int64_t read_bytes_of(const GraphModel& model, const UnitNodes& unit) {
  int64_t bytes = 0;
  for (int node : unit.nodes) bytes += model.nodes[static_cast<size_t>(node)].read_bytes;
  return bytes;
}

/// Unit of the graph that reads the weight; -1 when none does.
int reader_of(const GraphModel& model, const ggml_tensor* weight) {
  for (size_t u = 0; u < model.units.size(); ++u) {
    for (int node : model.units[u].nodes) {
      for (int source : model.nodes[static_cast<size_t>(node)].sources) {
        if (source < 0 && model.leaves[static_cast<size_t>(-1 - source)].tensor == weight)
          return static_cast<int>(u);
      }
    }
  }
  return -1;
}

/// Bytes that one execution of the graph reads between the last use of what a copy reads and the copy: how
/// far away in the caches the copy finds its weights. A shadow's last use is one execution ago, as an
/// original's is.
Json reuse_distance_bytes(const GraphModel& model, const UnitReplay& replay,
                          const std::vector<const ggml_tensor*>& weights_read, WeightChoice weights) {
  std::vector<int64_t> start{0};
  for (const UnitNodes& unit : model.units) start.push_back(start.back() + read_bytes_of(model, unit));
  const int64_t whole = start.back();
  // From the second copy on, the same weights have just been read.
  if (weights == WeightChoice::kSame) return replay.copies > 1 ? Json(0) : Json(whole);
  if (weights == WeightChoice::kShadow) return whole;
  int64_t nearest = whole;
  for (const ggml_tensor* weight : weights_read) {
    const int reader = reader_of(model, weight);
    if (reader < 0) return nullptr;
    const int64_t since = start[static_cast<size_t>(replay.unit)] - start[static_cast<size_t>(reader) + 1];
    nearest = std::min(nearest, since >= 0 ? since : since + whole);
  }
  return nearest;
}

struct ThreadUse {
  int64_t cpu_ns = 0, run_delay_ns = 0;
};

/// What this process has used since it started.
struct Use {
  int64_t at_ns = 0;
  int64_t voluntary_switches = 0, involuntary_switches = 0;
  std::map<std::string, ThreadUse> threads;  ///< empty where the kernel does not say
};

Use use_now() {
  Use use;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    std::ifstream file(entry.path() / "schedstat");
    ThreadUse thread;
    if (file >> thread.cpu_ns >> thread.run_delay_ns) use.threads[entry.path().filename()] = thread;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  use.voluntary_switches = usage.ru_nvcsw;
  use.involuntary_switches = usage.ru_nivcsw;
  use.at_ns = now_ns();
  return use;
}

/// A block while it is being measured.
class BlockJson {
 public:
  BlockJson(const std::string& workload, const std::string& arm, bool verify) {
    block_ = {
        {"workload", workload},     {"arm", arm},         {"verify", verify},       {"passes", Json::array()},
        {"digests", Json::array()}, {"logits", "ok"},     {"unit_ns", nullptr},     {"head_ns", nullptr},
        {"tail_ns", nullptr},       {"copy_ns", nullptr}, {"state_digest", nullptr}};
  }

  /// What the process used between the two moments was used by this block.
  void add_use(const Use& before, const Use& after) {
    if (started_ns_ == 0) started_ns_ = before.at_ns;
    ended_ns_ = after.at_ns;
    used_.at_ns += after.at_ns - before.at_ns;
    used_.voluntary_switches += after.voluntary_switches - before.voluntary_switches;
    used_.involuntary_switches += after.involuntary_switches - before.involuntary_switches;
    for (const auto& [name, use] : after.threads) {
      const auto earlier = before.threads.find(name);
      const ThreadUse start = earlier == before.threads.end() ? ThreadUse{} : earlier->second;
      used_.threads[name].cpu_ns += use.cpu_ns - start.cpu_ns;
      used_.threads[name].run_delay_ns += use.run_delay_ns - start.run_delay_ns;
    }
  }

  void add(const PassTimes& pass, ArmKind kind) {
    size_t digest = 0;
    while (digest < digests_.size() && digests_[digest] != pass.digests) ++digest;
    if (digest == digests_.size()) digests_.push_back(pass.digests);
    const bool is_timed = pass.graph_ns >= 0;
    block_["passes"].push_back({{"wall_ns", pass.wall_ns},
                                {"graph_ns", is_timed ? Json(pass.graph_ns) : Json(nullptr)},
                                {"instrument_ns", pass.instrument_ns},
                                {"digest", digest}});
    if (is_timed) block_["passes"].back()["step_graph_ns"] = pass.step_graph_ns;
    spun_ += pass.spun;
    if (!pass.logits_are_finite) block_["logits"] = "not_finite";
    if (pass.logits_are_constant && block_["logits"] == "ok") block_["logits"] = "constant";
    if (!pass.has_clocks) return;
    append("unit_ns", pass.unit_ns);
    if (kind == ArmKind::kPrice) return;  // its intervals are the clocks' own: they add up to no pass
    append("head_ns", pass.head_ns);
    append("tail_ns", pass.tail_ns);
    if (kind == ArmKind::kStampedReplay) append("copy_ns", pass.copy_ns);
  }

  void set_shared_inputs(const Arm& arm) {
    int count = 0;
    for (const auto& graph : arm.graphs) count += graph->shared_inputs();
    block_["shared_inputs"] = count;
  }

  void report_planted() {
    block_["planted"] = {{"spins", spun_.spins},
                         {"spun_ns", spun_.spun_ns},
                         {"late_spins", spun_.late_spins},
                         {"late_ns", spun_.late_ns}};
  }

  void set_state_digest(const std::string& digest) { block_["state_digest"] = digest; }

  Json finish() {
    Json threads = Json::array();
    for (const auto& [name, use] : used_.threads) {
      if (use.cpu_ns > 0) threads.push_back({{"cpu_ns", use.cpu_ns}, {"run_delay_ns", use.run_delay_ns}});
    }
    block_["threads"] = threads;
    block_["voluntary_switches"] = used_.voluntary_switches;
    block_["involuntary_switches"] = used_.involuntary_switches;
    block_["started_ns"] = started_ns_;
    block_["ended_ns"] = ended_ns_;
    block_["elapsed_ns"] = used_.at_ns;
    block_["digests"] = digests_;
    return std::move(block_);
  }

 private:
  template <typename T>
  void append(const char* key, const std::vector<T>& steps) {
    if (block_[key].is_null()) block_[key] = Json::array();
    for (const T& step : steps) block_[key].push_back(step);
  }

  Json block_;
  std::vector<std::vector<std::string>> digests_;
  int64_t started_ns_ = 0, ended_ns_ = 0;
  Use used_;  ///< differences
  SpinCount spun_;
};

Status verify_block(Runner& runner, Workload& workload, Arm& arm, int passes, BlockJson& block) {
  for (int i = 0; i < passes; ++i) {
    const Use before = use_now();
    std::string state_digest;
    const Result<PassTimes> pass = runner.verify(workload, arm, state_digest);
    if (!pass) return pass.error();
    block.add_use(before, use_now());
    block.add(*pass, arm.kind);
    block.set_state_digest(state_digest);
  }
  return {};
}

Status time_blocks(Runner& runner, Workload& workload, const std::vector<Arm*>& arms, const Turn& turn,
                   const std::function<Status()>& hold, std::vector<BlockJson>& blocks) {
  Use before = use_now();
  Pace pace;
  pace.warm_up_steps = turn.warm_up_steps;
  pace.burst_steps = turn.burst_steps;
  pace.hold = hold;
  pace.begin = [&] { before = use_now(); };
  pace.after_step = [&](size_t arm) {
    Use after = use_now();
    blocks[arm].add_use(before, after);
    before = std::move(after);
  };
  for (int pass = 0; pass < turn.passes; ++pass) {
    const Result<std::vector<PassTimes>> passes = runner.run_turn(workload, arms, pace);
    if (!passes) return passes.error();
    for (size_t a = 0; a < arms.size(); ++a) blocks[a].add((*passes)[a], arms[a]->kind);
  }
  return {};
}

int64_t number_of(const gguf_context* file, const std::string& key, int64_t otherwise) {
  const auto id = gguf_find_key(file, key.c_str());
  if (id < 0) return otherwise;
  switch (gguf_get_kv_type(file, id)) {
    case GGUF_TYPE_UINT32:
      return gguf_get_val_u32(file, id);
    case GGUF_TYPE_INT32:
      return gguf_get_val_i32(file, id);
    case GGUF_TYPE_UINT64:
      return static_cast<int64_t>(gguf_get_val_u64(file, id));
    default:
      return otherwise;
  }
}

}  // namespace

Result<ArmRequest> parse_arm(const Workload& workload, const Json& request) {
  ArmRequest arm;
  arm.id = request.at("id").get<std::string>();
  const Result<ArmKind> kind = kind_of(request.at("kind").get<std::string>());
  if (!kind) return kind.error();
  arm.kind = *kind;
  arm.replays.resize(workload.graphs.size());
  const bool is_replay = arm.kind == ArmKind::kReplay || arm.kind == ArmKind::kStampedReplay;
  if (!is_replay) return arm;
  for (const Json& entry : request.at("units")) {
    int graph = 0;
    const Result<UnitReplay> replay = parse_replay(workload, entry, graph);
    if (!replay) return replay.error();
    arm.replays[static_cast<size_t>(graph)].push_back(*replay);
  }
  return arm;
}

Json prepared_json(const Workload& workload, const Arm& arm,
                   const std::vector<std::vector<UnitReplay>>& replays, size_t shadow_bytes) {
  Json units = Json::array();
  size_t scratch_bytes = 0;
  for (size_t g = 0; g < arm.graphs.size(); ++g) {
    const ArmGraph& graph = *arm.graphs[g];
    const GraphModel& model = *workload.graphs[g];
    scratch_bytes = std::max(scratch_bytes, graph.scratch_bytes());
    for (size_t i = 0; i < replays[g].size(); ++i) {
      const UnitReplay& replay = replays[g][i];
      const WeightChoice weights = graph.weights_used()[i];
      units.push_back(
          {{"unit", {g, replay.unit}},
           {"weights", name_of(weights)},
           {"read_bytes", read_bytes_of(model, model.units[static_cast<size_t>(replay.unit)])},
           {"reuse_distance_bytes", reuse_distance_bytes(model, replay, graph.weights_read()[i], weights)}});
    }
  }
  return {{"id", arm.id},
          {"units", units},
          {"refused", Json::array()},
          {"scratch_bytes", scratch_bytes},
          {"shadow_bytes", shadow_bytes}};
}

Result<std::vector<Json>> measure_turn(Runner& runner, Workload& workload, const std::vector<Arm*>& arms,
                                       const Turn& turn, const std::function<Status()>& hold) {
  std::vector<BlockJson> blocks;
  blocks.reserve(arms.size());
  for (const Arm* arm : arms) blocks.emplace_back(workload.id, arm->id, turn.verify);
  for (size_t a = 0; a < arms.size() && turn.verify; ++a) {
    if (Status status = verify_block(runner, workload, *arms[a], turn.passes, blocks[a]); !status)
      return status.error();
  }
  if (!turn.verify) {
    if (Status status = time_blocks(runner, workload, arms, turn, hold, blocks); !status)
      return status.error();
  }
  std::vector<Json> finished;
  finished.reserve(arms.size());
  for (size_t a = 0; a < arms.size(); ++a) {
    blocks[a].set_shared_inputs(*arms[a]);
    if (workload.has_planted()) blocks[a].report_planted();
    finished.push_back(blocks[a].finish());
  }
  return finished;
}

std::optional<int64_t> estimate_memory_bytes(const std::string& model_path, int context_tokens,
                                             const std::map<std::string, std::string>& flags) {
  gguf_context* file = gguf_init_from_file(model_path.c_str(), {/*no_alloc=*/true, /*ctx=*/nullptr});
  if (file == nullptr) return std::nullopt;
  std::string architecture;
  if (const auto id = gguf_find_key(file, "general.architecture"); id >= 0) {
    architecture = gguf_get_val_str(file, id);
  }
  const auto number = [&](const char* key, int64_t otherwise) {
    return number_of(file, architecture + "." + key, otherwise);
  };
  const int64_t layers = number("block_count", 0);
  const int64_t heads = number("attention.head_count", 0);
  const int64_t kv_heads = number("attention.head_count_kv", heads);
  const int64_t head_width = heads > 0 ? number("embedding_length", 0) / heads : 0;
  const int64_t width =
      number("attention.key_length", head_width) + number("attention.value_length", head_width);
  gguf_free(file);
  if (layers <= 0 || kv_heads <= 0 || width <= 0) return std::nullopt;
  // 16-bit cells, unless the flags say something wider.
  const auto key_type = flags.find("ctk");
  const int64_t cell_bytes = key_type != flags.end() && key_type->second == "f32" ? 4 : 2;
  struct stat info {};
  stat(model_path.c_str(), &info);
  return (info.st_size + layers * kv_heads * width * cell_bytes * context_tokens) * 5 / 4;
}

}  // namespace opledger::ggml
