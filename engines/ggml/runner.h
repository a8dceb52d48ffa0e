// Runs passes of a workload inside the engine and times them; finds out once what a pass consists of.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engines/ggml/engine.h"
#include "engines/ggml/workload.h"

namespace opledger::ggml {

struct PassTimes {
  size_t calls = 0;           ///< graph calls seen so far
  size_t executed_calls = 0;  ///< with the one that a test's fault hides
  int64_t wall_ns = 0;        ///< net of instrument_ns
  int64_t graph_ns = -1;      ///< -1: not known (the hook was not there)
  int64_t instrument_ns = 0;  ///< patching graphs and reading clocks
  std::vector<int64_t> step_graph_ns;
  bool has_clocks = false;
  std::vector<int64_t> head_ns, tail_ns;               ///< per step, where the arm has clocks
  std::vector<std::vector<int64_t>> unit_ns, copy_ns;  ///< likewise, one time per unit
  std::vector<std::string> digests;                    ///< one per output row, 32 hex digits
  bool logits_are_finite = true, logits_are_constant = false;
  SpinCount spun;  ///< by planted work
};

/// How the steps of a turn follow one another, and who is told.
struct Pace {
  int warm_up_steps = 0;         ///< of the first arm, forgotten: at the beginning and after every hold
  int burst_steps = 0;           ///< the core may stop the engine after so many steps of every arm; 0: never
  std::function<Status()> hold;  ///< returns when the engine may go on
  std::function<void()> begin;   ///< what follows is measured
  std::function<void(size_t arm)> after_step;
  int steps_in_burst = 0;  ///< since the last hold
  bool is_cold = true;     ///< nothing has run since the engine was stopped
};

/// Units found by an earlier probe, by graph signature.
using KnownUnits = std::map<std::string, std::vector<UnitNodes>>;

class Runner {
 public:
  explicit Runner(Engine& engine);
  ~Runner();

  /// Runs the workload once to learn its calls, graphs, units and routing. `probe`: look for units;
  /// `known_units` (may be null): use these instead, refused when a signature is missing.
  Status describe(Workload& workload, bool probe, const KnownUnits* known_units);

  /// Makes lasting memory what a pass of this workload starts from.
  Status activate(Workload& workload);
  /// One pass of every arm, which take turns step by step: forward in even steps, backward in odd ones. A
  /// machine's speed moves by several percent within a few tenths of a second, so arms that are to be
  /// compared must not lie a cycle apart. `pace` goes on from one pass to the next. The workload must be
  /// active.
  Result<std::vector<PassTimes>> run_turn(Workload& workload, const std::vector<Arm*>& arms, Pace& pace);
  /// One pass whose times mean nothing, over lasting memory that held nothing but the prompt; afterwards
  /// `state_digest` covers the raw bytes of all of it.
  Result<PassTimes> verify(Workload& workload, Arm& arm, std::string& state_digest);

  /// Builds an arm's graphs; scratch grows as needed.
  Status prepare(Workload& workload, Arm& arm, const std::vector<std::vector<UnitReplay>>& replays);
  [[nodiscard]] WeightBank& weights() { return weights_; }
  void forget_activation() { active_ = nullptr; }

 private:
  struct Pass;  ///< what the graph handler fills during one pass
  ggml_status on_graph(ggml_backend_t backend, ggml_cgraph* graph);
  enum class Mode { kPassThrough, kDescribe, kRouting, kMeasure, kVerify };
  /// The call's place among the described ones, counting up. Empty for the call that a test's fault hides.
  std::optional<size_t> next_call();
  /// Whether the graph is the one that was described at that place: by its node count in timed passes, by its
  /// whole signature in all others.
  [[nodiscard]] bool is_described(size_t call, const ggml_cgraph* graph) const;
  void refuse_call(size_t call);
  ggml_status describe_call(ggml_backend_t backend, ggml_cgraph* graph);
  ggml_status observe_routing(ggml_backend_t backend, ggml_cgraph* graph);
  ggml_status measure_call(ggml_backend_t backend, ggml_cgraph* graph);
  Status decode_prompt(const Workload& workload);
  /// One pass of the bare graphs, untimed, with on_graph in the given mode.
  Status walk(const Workload& workload, Mode mode);
  Status decode_step(const Workload& workload, size_t step);
  Status put_back(const Workload& workload);
  static PassTimes begin_pass(const Arm& arm);
  /// Where the sequence stands at the beginning of a step that has just been reached.
  [[nodiscard]] Result<Checkpoint> step_start(const Workload& workload, size_t step) const;
  Status return_to(const Workload& workload, const Checkpoint& start);
  /// Holds where a burst is over, and warms up where the engine was stopped.
  Status keep_pace(Workload& workload, Arm& first, size_t step, const PassTimes& so_far, Pace& pace);
  /// One step of every arm, each from where the first one began.
  Status step_all(Workload& workload, const std::vector<Arm*>& arms, size_t step,
                  std::vector<PassTimes>& passes, const Pace& pace);
  /// One step from where the lasting memory stands, added to the pass.
  Status run_step(Workload& workload, Arm& arm, size_t step, Mode mode, PassTimes& pass);
  void digest_logits(PassTimes& pass) const;
  /// Fails when the pass did not make as many graph calls as were described.
  static Status check_calls(const Workload& workload, size_t calls);
  void finish_routing(Workload& workload);

  Engine& engine_;
  Mode mode_ = Mode::kPassThrough;
  Workload* workload_ = nullptr;  ///< of the pass that runs
  Arm* arm_ = nullptr;
  PassTimes* pass_ = nullptr;  ///< the one that runs
  bool probe_ = false;
  const KnownUnits* known_units_ = nullptr;
  std::string problem_;  ///< why a graph call could not be handled
  ggml_backend_t backend_ = nullptr;

  Workload* active_ = nullptr;
  Checkpoint start_;                         ///< of the active workload's passes
  std::vector<std::vector<char>> snapshot_;  ///< lasting memory there
  WeightBank weights_;
  Scratch scratch_;
  std::map<std::pair<int, int>, std::vector<int64_t>> distinct_;  ///< (graph, node) -> per call
};

}  // namespace opledger::ggml
