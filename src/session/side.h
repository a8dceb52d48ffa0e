// One side of a comparison: how its engine is started and loaded, what its graphs are, and which arms it
// runs. Internal to the session.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/graph/graph.h"
#include "core/record/record.h"
#include "core/scopes/scopes.h"
#include "gguf/reader.h"
#include "session/arms.h"
#include "session/engine.h"
#include "session/workloads.h"

namespace opledger::session {

/// What is known of one workload on one side.
struct SideWorkload {
  std::string graph_text;       ///< the probing engine's `graph` reply
  core::WorkloadGraph graph;    ///< the same, read
  nlohmann::json given_units;   ///< its groups, for later launches
  nlohmann::json planted;       ///< work for later launches, as `graph` takes it; null: none
  std::vector<int> unit_scope;  ///< in unit order
  std::set<core::UnitName> excluded;
  std::vector<ArmPlan> arms;
  std::set<std::string> checked_arms;     ///< ids of those whose state was digested once
  std::map<std::string, int> far_copies;  ///< by arm: launch groups in which its copies were unlike originals
  BlocksByArm timed_blocks;               ///< of this launch group, without baselines
  double pass_ns = 0;                     ///< of a baseline, from what was seen last; 0 before
  double cost_ratio = 1.0;                ///< time that measuring takes over the sum of its passes
  int rounds = 0;                         ///< in this launch group
};

// NOLINTNEXTLINE(bugprone-exception-escape): the JSON library's move may throw by its declaration alone
struct Side {
  core::Side side = core::Side::kA;
  EngineSpec spec;
  LoadSettings settings;
  EngineProgram program;
  gguf::GgufFile model;
  bool may_probe = true;
  std::string fault;  ///< to be planted in the method; empty: none

  nlohmann::json initialize, load_params, load;
  std::shared_ptr<const core::RuleSet> rules;
  std::optional<int64_t> memory_bytes;  ///< what `load` takes, as the engine estimates it
  std::vector<std::string> arm_kinds;
  std::vector<SideWorkload> workloads;
  double launch_ns = 0;  ///< a start, load and all graphs of the last launch

  std::optional<Engine> engine;  ///< while it runs

  [[nodiscard]] const char* letter() const { return core::side_name(side); }
  [[nodiscard]] bool can(const char* capability) const;
  /// Whether its copies can read weights of this kind: same, sibling, shadow.
  [[nodiscard]] bool can_give(const char* weights) const;
  [[nodiscard]] int layers() const;
  /// After this many layers a hybrid model's layers are of the same sort again; 1 for uniform models.
  [[nodiscard]] int layer_interval() const;
};

/// Reads what a side was asked to be: its spec, its flags over the common ones, its program and its model's
/// header. Nothing is started. Bad input names the spec, the flag or the file.
Result<Side> resolve_side(core::Side which, const std::string& spec,
                          const std::map<std::string, std::string>& flags, int cores);

/// Starts the side's engine, asks what memory `load` takes (environment error when the machine has not got
/// it) and loads the model. Fills initialize, load_params, load, memory_bytes, arm_kinds and engine.
Status start_and_load(Side& side, int64_t context_tokens, const EngineContext& context);

/// Asks the running engine for a workload's graph, found by probing where `probe` is true. `planted`: work
/// that its passes are to do besides; null: none.
Result<nlohmann::json> ask_graph(Side& side, const Workload& workload, bool probe,
                                 const nlohmann::json& given_units, const nlohmann::json& planted = {});

/// Groups of more than one node, in the form that `graph` takes; null when there are none.
nlohmann::json groups_of(const core::WorkloadGraph& graph);

/// A failure naming the difference unless both have the same calls, signatures and units.
Status check_same_graph(const std::string& engine, const core::WorkloadGraph& probed,
                        const core::WorkloadGraph& measured);

}  // namespace opledger::session
