#include "engines/ggml/runner.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <unistd.h>
#include <xxhash.h>

#include "engines/ggml/backend_hook.h"
#include "engines/ggml/faults.h"
#include "engines/ggml/node_cost.h"
#include "engines/ggml/probe.h"

namespace opledger::ggml {
namespace {

std::string hex_of(XXH128_hash_t hash) {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text;
}

/// Half of the memory that is available now: what a probe's private outputs may take.
size_t probe_memory_limit() {
  const long pages = sysconf(_SC_AVPHYS_PAGES);
  return pages <= 0 ? size_t{1} << 30
                    : static_cast<size_t>(pages) * static_cast<size_t>(sysconf(_SC_PAGESIZE)) / 2;
}

/// The planted fault of a measured pass that computes something else.
void change_result(ggml_cgraph* graph) {
  const ggml_tensor* logits = graph->nodes[graph->n_nodes - 1];
  if (logits->type == GGML_TYPE_F32) *static_cast<float*>(logits->data) += 1;
}

bool takes_fused_for_single(const std::vector<UnitNodes>& groups) {
  if (has_fault("split_units")) return true;
  return has_fault("broken_fusion") && std::any_of(groups.begin(), groups.end(), [](const UnitNodes& group) {
           return group.why == "fused";
         });
}

struct IdsReader {
  const ggml_tensor* ids;
  std::vector<int64_t>* distinct;
};

void count_distinct_ids(ggml_tensor*, const ggml_tensor*, int thread, int, void* userdata) {
  if (thread != 0) return;
  const auto* reader = static_cast<const IdsReader*>(userdata);
  std::set<int32_t> seen;
  for (int64_t row = 0; row < reader->ids->ne[1]; ++row) {
    for (int64_t i = 0; i < reader->ids->ne[0]; ++i) {
      const char* at = static_cast<const char*>(reader->ids->data) +
                       static_cast<size_t>(row) * reader->ids->nb[1] +
                       static_cast<size_t>(i) * reader->ids->nb[0];
      seen.insert(*reinterpret_cast<const int32_t*>(at));
    }
  }
  reader->distinct->push_back(static_cast<int64_t>(seen.size()));
}

}  // namespace

Runner::Runner(Engine& engine) : engine_(engine) {
  set_graph_handler([this](ggml_backend_t backend, ggml_cgraph* graph) { return on_graph(backend, graph); });
}

Runner::~Runner() {
  set_graph_handler({});
}

ggml_status Runner::on_graph(ggml_backend_t backend, ggml_cgraph* graph) {
  backend_ = backend;
  switch (mode_) {
    case Mode::kDescribe:
      return describe_call(backend, graph);
    case Mode::kRouting:
      return observe_routing(backend, graph);
    case Mode::kMeasure:
    case Mode::kVerify:
      return measure_call(backend, graph);
    case Mode::kPassThrough:
      break;
  }
  return execute(backend, graph);
}

std::optional<size_t> Runner::next_call() {
  // Read once: this runs inside every measured pass.
  static const bool hides_second = has_fault("hide_call");
  static const bool loses_second = has_fault("lose_call");
  const bool is_hidden = hides_second || (loses_second && mode_ != Mode::kDescribe);
  if (is_hidden && pass_->executed_calls++ == 1) return std::nullopt;
  return pass_->calls++;
}

bool Runner::is_described(size_t call, const ggml_cgraph* graph) const {
  if (call >= workload_->calls.size()) return false;
  const GraphModel& model = *workload_->graphs[static_cast<size_t>(workload_->calls[call])];
  if (graph->n_nodes != model.node_count()) return false;
  // Hashing takes a good part of a decode step: timed passes are told apart by their node counts only.
  return mode_ == Mode::kMeasure || signature_of(graph) == model.signature;
}

void Runner::refuse_call(size_t call) {
  problem_ = "workload " + workload_->id + ": graph call " + std::to_string(call) +
             " of a pass is not the one that was described";
}

ggml_status Runner::describe_call(ggml_backend_t backend, ggml_cgraph* graph) {
  if (!next_call()) return execute(backend, graph);
  const std::string signature = signature_of(graph);
  for (size_t i = 0; i < workload_->graphs.size(); ++i) {
    if (workload_->graphs[i]->signature == signature) {
      workload_->calls.push_back(static_cast<int>(i));
      return execute(backend, graph);
    }
  }
  auto model = std::make_unique<GraphModel>(describe_graph(backend, graph, engine_.weight_names()));
  if (known_units_ != nullptr) {
    const auto known = known_units_->find(signature);
    if (known == known_units_->end()) {
      problem_ = "the graph differs from the one that was probed (signature " + signature + ")";
    } else {
      set_units(*model, known->second);
    }
  } else if (probe_) {
    const bool lacks_memory = workload_->graphs.empty() && has_fault("first_probe_fails");
    const ProbeResult probe = probe_graph(backend, graph, *model, lacks_memory ? 0 : probe_memory_limit());
    // One graph that was not looked at leaves the workload's fusion unknown, whatever the others gave.
    if (!probe.ran && workload_->probe_ran) workload_->probe_reason = probe.reason;
    workload_->probe_ran = workload_->probe_ran && probe.ran;
    for (size_t i = 0; i < probe.was_written.size(); ++i) model->nodes[i].was_written = probe.was_written[i];
    if (!takes_fused_for_single(probe.groups)) set_units(*model, probe.groups);
  }
  weights_.add(*model);
  workload_->calls.push_back(static_cast<int>(workload_->graphs.size()));
  workload_->graphs.push_back(std::move(model));
  return execute(backend, graph);
}

ggml_status Runner::observe_routing(ggml_backend_t backend, ggml_cgraph* graph) {
  const std::optional<size_t> call = next_call();
  if (!call) return execute(backend, graph);
  if (!is_described(*call, graph)) {
    refuse_call(*call);
    return execute(backend, graph);
  }
  const int g = workload_->calls[*call];
  const GraphModel& model = *workload_->graphs[static_cast<size_t>(g)];
  std::vector<std::unique_ptr<IdsReader>> readers;
  const auto nodes = static_cast<size_t>(graph->n_nodes);
  GraphBuilder builder(2 * nodes, nodes);
  int next = 0;
  const auto append_until = [&](int end) {
    for (; next < end; ++next) builder.append(graph->nodes[next], use_count_of(graph, graph->nodes[next]));
  };
  for (const UnitNodes& unit : model.units) {
    append_until(unit.nodes.front());
    for (int node : unit.nodes) {
      const int slot = model.nodes[static_cast<size_t>(node)].expert_ids;
      if (slot < 0) continue;
      readers.push_back(
          std::make_unique<IdsReader>(IdsReader{graph->nodes[node]->src[slot], &distinct_[{g, node}]}));
      builder.append(builder.custom_node(count_distinct_ids, readers.back().get()), 1);
    }
    append_until(unit.nodes.back() + 1);
  }
  append_until(graph->n_nodes);
  return execute(backend, builder.finish(graph));
}

ggml_status Runner::measure_call(ggml_backend_t backend, ggml_cgraph* graph) {
  const int64_t entered_ns = now_ns();
  const std::optional<size_t> call = next_call();
  if (!call) return execute(backend, graph);
  if (mode_ == Mode::kVerify && has_fault("rename_node")) ggml_set_name(graph->nodes[0], "another");
  if (!is_described(*call, graph)) {
    refuse_call(*call);
    return execute(backend, graph);
  }
  const int g = workload_->calls[*call];
  ArmGraph* arm_graph = arm_->graphs.empty() ? nullptr : arm_->graphs[static_cast<size_t>(g)].get();
  ggml_cgraph* to_run = arm_graph == nullptr ? graph : arm_graph->patch(graph, scratch_);
  const int64_t start_ns = now_ns();
  const ggml_status status = execute(backend, to_run);
  const int64_t end_ns = now_ns();
  static const bool changes_result = has_fault("changed_result");
  if (changes_result && arm_->kind == ArmKind::kStamp) change_result(graph);
  pass_->graph_ns += end_ns - start_ns;
  if (arm_graph != nullptr && arm_graph->has_clocks()) {
    const GraphModel& model = *workload_->graphs[static_cast<size_t>(g)];
    UnitTimes times;
    times.unit_ns.resize(model.units.size());
    times.copy_ns.resize(model.units.size());
    arm_graph->read_clocks(times);
    const size_t first = workload_->first_unit_of(g);
    for (size_t u = 0; u < model.units.size(); ++u) {
      pass_->unit_ns.back()[first + u] += times.unit_ns[u];
      pass_->copy_ns.back()[first + u] += times.copy_ns[u];
    }
    pass_->head_ns.back() += times.first_ns - start_ns;
    pass_->tail_ns.back() += end_ns - times.last_ns;
  }
  pass_->instrument_ns += (start_ns - entered_ns) + (now_ns() - end_ns);
  return status;
}

Status Runner::decode_prompt(const Workload& workload) {
  mode_ = Mode::kPassThrough;
  if (workload.prompt.empty()) return {};
  return engine_.decode(workload.prompt, 0);
}

Status Runner::decode_step(const Workload& workload, size_t step) {
  if (Status status = engine_.decode(workload.tokens_of(step), workload.position_of(step)); !status)
    return status;
  return problem_.empty() ? Status{} : Status{Error::failure(problem_)};
}

Status Runner::check_calls(const Workload& workload, size_t calls) {
  if (calls == workload.calls.size()) return {};
  return Error::failure("workload " + workload.id + ": a pass made " + std::to_string(calls) +
                        " graph calls where " + std::to_string(workload.calls.size()) +
                        " were described; its times would miss work");
}

Status Runner::walk(const Workload& workload, Mode mode) {
  PassTimes pass;
  pass_ = &pass;
  mode_ = mode;
  Status status;
  for (size_t step = 0; step < workload.steps() && status; ++step) status = decode_step(workload, step);
  mode_ = Mode::kPassThrough;
  pass_ = nullptr;
  return status ? check_calls(workload, pass.calls) : status;
}

Status Runner::describe(Workload& workload, bool probe, const KnownUnits* known_units) {
  workload_ = &workload;
  probe_ = probe;
  known_units_ = known_units;
  workload.probe_ran = probe && known_units == nullptr;
  problem_.clear();
  active_ = nullptr;
  engine_.clear();
  if (Status status = decode_prompt(workload); !status) return status;
  if (Status status = walk(workload, Mode::kDescribe); !status) return status;

  distinct_.clear();
  if (!workload.is_routed()) return {};
  if (Status activated = activate(workload); !activated) return activated;
  if (Status back = put_back(workload); !back) return back;
  if (Status status = walk(workload, Mode::kRouting); !status) return status;
  finish_routing(workload);
  return {};
}

void Runner::finish_routing(Workload& workload) {
  for (const auto& [place, distinct] : distinct_) {
    const auto& [g, n] = place;
    NodeFacts& facts = workload.graphs[static_cast<size_t>(g)]->nodes[static_cast<size_t>(n)];
    RoutedNode routed;
    routed.graph = g;
    routed.node = n;
    routed.distinct = distinct;
    int64_t most_possible = 0, sum = 0;
    for (int64_t d : distinct) sum += d;
    for (int source : facts.sources) {
      if (source >= 0) continue;
      const Leaf& leaf = workload.graphs[static_cast<size_t>(g)]->leaves[static_cast<size_t>(-1 - source)];
      if (leaf.kind != LeafKind::kWeight || leaf.tensor->ne[2] <= 1) continue;
      routed.layer = role_of(leaf.tensor->name).layer;
      routed.experts = leaf.tensor->ne[2];
      most_possible += payload_bytes(leaf.tensor) / leaf.tensor->ne[2];
    }
    routed.used = facts.routed_used;
    routed.tokens = facts.routed_tokens;
    // The description counted the most that the routing could select; what it did select is known now.
    const int64_t assumed = std::min(routed.used * routed.tokens, routed.experts);
    const int64_t mean = sum / static_cast<int64_t>(distinct.size());
    facts.read_bytes += (mean - assumed) * most_possible;
    workload.routing.push_back(std::move(routed));
  }
}

Status Runner::activate(Workload& workload) {
  if (active_ == &workload) return {};
  active_ = nullptr;
  const std::vector<Leaf> memory = workload.lasting_memory();
  for (const Leaf& leaf : memory) std::memset(leaf.tensor->data, 0, ggml_nbytes(leaf.tensor));
  engine_.clear();
  snapshot_.clear();
  if (workload.is_decode) {
    if (Status status = decode_prompt(workload); !status) return status;
    const int positions = static_cast<int>(workload.prompt.size());
    Result<Checkpoint> start = engine_.checkpoint(positions, workload.has_recurrent_state());
    if (!start) return start.error();
    start_ = std::move(*start);
    for (const Leaf& leaf : memory) {
      const char* data = static_cast<const char*>(leaf.tensor->data);
      snapshot_.emplace_back(data, data + ggml_nbytes(leaf.tensor));
    }
  }
  active_ = &workload;
  return {};
}

Status Runner::put_back(const Workload& workload) {
  if (workload.is_decode) return engine_.restore(start_);
  engine_.clear();
  return {};
}

PassTimes Runner::begin_pass(const Arm& arm) {
  PassTimes pass;
  pass.has_clocks = is_stamped(arm.kind);
  pass.graph_ns = arm.kind == ArmKind::kUnhooked ? -1 : 0;
  return pass;
}

void Runner::digest_logits(PassTimes& pass) const {
  const float* logits = engine_.logits(0);
  const auto vocab = static_cast<size_t>(engine_.vocab_tokens());
  pass.digests.push_back(hex_of(XXH3_128bits(logits, vocab * sizeof(float))));
  bool is_constant = true;
  for (size_t i = 0; i < vocab; ++i) {
    if (!std::isfinite(logits[i])) pass.logits_are_finite = false;
    is_constant = is_constant && logits[i] == logits[0];
  }
  pass.logits_are_constant = pass.logits_are_constant || is_constant;
}

Status Runner::run_step(Workload& workload, Arm& arm, size_t step, Mode mode, PassTimes& pass) {
  workload_ = &workload;
  arm_ = &arm;
  pass_ = &pass;
  problem_.clear();
  attach_backend_hook(arm.kind != ArmKind::kUnhooked);
  mode_ = arm.kind == ArmKind::kUnhooked ? Mode::kPassThrough : mode;
  if (pass.has_clocks) {
    pass.unit_ns.emplace_back(workload.unit_count(), 0);
    pass.copy_ns.emplace_back(workload.unit_count(), 0);
    pass.head_ns.push_back(0);
    pass.tail_ns.push_back(0);
  }
  const int64_t instrument_ns = pass.instrument_ns;
  const int64_t graph_ns = pass.graph_ns;
  const SpinCount spun = workload.spun();
  const int64_t start_ns = now_ns();
  Status status = decode_step(workload, step);
  pass.wall_ns += now_ns() - start_ns - (pass.instrument_ns - instrument_ns);
  mode_ = Mode::kPassThrough;
  attach_backend_hook(true);
  pass_ = nullptr;
  if (!status) return status;
  pass.spun += workload.spun() - spun;
  pass.step_graph_ns.push_back(pass.graph_ns - graph_ns);
  digest_logits(pass);
  const bool is_last = step + 1 == workload.steps();
  return is_last && arm.kind != ArmKind::kUnhooked ? check_calls(workload, pass.calls) : Status{};
}

Result<Checkpoint> Runner::step_start(const Workload& workload, size_t step) const {
  if (!workload.is_decode || step == 0) return start_;
  return engine_.checkpoint(workload.position_of(step), !start_.recurrent_state.empty());
}

Status Runner::return_to(const Workload& workload, const Checkpoint& start) {
  return workload.is_decode ? engine_.restore(start) : put_back(workload);
}

Status Runner::keep_pace(Workload& workload, Arm& first, size_t step, const PassTimes& so_far, Pace& pace) {
  if (pace.burst_steps > 0 && pace.steps_in_burst == pace.burst_steps) {
    if (Status status = pace.hold(); !status) return status;
    pace.steps_in_burst = 0;
    pace.is_cold = true;
  }
  ++pace.steps_in_burst;
  if (!pace.is_cold) return {};
  pace.is_cold = false;
  for (int i = 0; i < pace.warm_up_steps; ++i) {
    const Result<Checkpoint> start = step_start(workload, step);
    if (!start) return start.error();
    PassTimes forgotten = so_far;  // a call is known by its place in the pass
    if (Status status = run_step(workload, first, step, Mode::kMeasure, forgotten); !status) return status;
    if (Status status = return_to(workload, *start); !status) return status;
  }
  pace.begin();
  return {};
}

Status Runner::step_all(Workload& workload, const std::vector<Arm*>& arms, size_t step,
                        std::vector<PassTimes>& passes, const Pace& pace) {
  static const bool stays_put = has_fault("stay_put");
  Checkpoint before;
  if (arms.size() > 1) {
    Result<Checkpoint> start = step_start(workload, step);
    if (!start) return start.error();
    before = std::move(*start);
  }
  for (size_t i = 0; i < arms.size(); ++i) {
    const size_t a = step % 2 == 0 ? i : arms.size() - 1 - i;
    if (i > 0 && !stays_put) {
      if (Status status = return_to(workload, before); !status) return status;
    }
    if (Status status = run_step(workload, *arms[a], step, Mode::kMeasure, passes[a]); !status) return status;
    pace.after_step(a);
  }
  return {};
}

Result<std::vector<PassTimes>> Runner::run_turn(Workload& workload, const std::vector<Arm*>& arms,
                                                Pace& pace) {
  std::vector<PassTimes> passes;
  passes.reserve(arms.size());
  for (const Arm* arm : arms) passes.push_back(begin_pass(*arm));
  if (Status status = put_back(workload); !status) return status.error();
  for (size_t step = 0; step < workload.steps(); ++step) {
    if (Status status = keep_pace(workload, *arms.front(), step, passes.front(), pace); !status)
      return status.error();
    if (Status status = step_all(workload, arms, step, passes, pace); !status) return status.error();
  }
  return passes;
}

Result<PassTimes> Runner::verify(Workload& workload, Arm& arm, std::string& state_digest) {
  const std::vector<Leaf> memory = workload.lasting_memory();
  if (Status status = put_back(workload); !status) return status.error();
  for (size_t i = 0; i < memory.size(); ++i) {
    const ggml_tensor* tensor = memory[i].tensor;
    if (!workload.is_decode) {
      std::memset(tensor->data, 0, ggml_nbytes(tensor));
    } else if (memory[i].kind == LeafKind::kKv) {
      // The recurrent state was put back by the engine itself, just now.
      std::memcpy(tensor->data, snapshot_[i].data(), snapshot_[i].size());
    }
  }
  PassTimes pass = begin_pass(arm);
  for (size_t step = 0; step < workload.steps(); ++step) {
    if (Status status = run_step(workload, arm, step, Mode::kVerify, pass); !status) return status.error();
  }
  XXH3_state_t* state = XXH3_createState();
  XXH3_128bits_reset(state);
  for (const Leaf& leaf : memory) XXH3_128bits_update(state, leaf.tensor->data, ggml_nbytes(leaf.tensor));
  state_digest = hex_of(XXH3_128bits_digest(state));
  XXH3_freeState(state);
  return pass;
}

Status Runner::prepare(Workload& workload, Arm& arm, const std::vector<std::vector<UnitReplay>>& replays) {
  arm.graphs.clear();
  if (arm.kind == ArmKind::kUnhooked && workload.has_planted())
    return Error::bad_input("arm " + arm.id + ": without the hook there is no planted work");
  const bool is_bare = arm.kind == ArmKind::kBaseline && !workload.has_planted();
  if (is_bare || arm.kind == ArmKind::kUnhooked) return {};
  const size_t shadow_limit = probe_memory_limit() / 2;  // a quarter of the available memory
  size_t scratch_bytes = 0;
  for (size_t g = 0; g < workload.graphs.size(); ++g) {
    arm.graphs.push_back(std::make_unique<ArmGraph>(*workload.graphs[g], arm.kind, replays[g], weights_,
                                                    shadow_limit, Faults::planted_in(*workload.graphs[g])));
    scratch_bytes = std::max(scratch_bytes, arm.graphs.back()->scratch_bytes());
  }
  if (backend_ == nullptr || !scratch_.reserve(backend_, scratch_bytes)) {
    return Error::environment("no memory for " + std::to_string(scratch_bytes) + " bytes of scratch");
  }
  return {};
}

}  // namespace opledger::ggml
