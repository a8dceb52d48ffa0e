// One arm's version of one graph: copies of units before their originals, clock nodes between, the originals
// themselves untouched. Built once, then patched with each call's addresses: building inside a pass would
// push the weights out of the caches that the pass is to find.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engines/ggml/graph_builder.h"
#include "engines/ggml/graph_model.h"
#include "engines/ggml/weights.h"

namespace opledger::ggml {

enum class ArmKind { kBaseline, kUnhooked, kEmpty, kPrice, kStamp, kReplay, kStampedReplay };

enum class WeightChoice { kSame, kSibling, kShadow };

/// Copies of one unit.
struct UnitReplay {
  int unit = 0;
  int copies = 1;
  WeightChoice weights = WeightChoice::kSame;
  int stride = 1;
};

/// Whether arms of this kind hold clock nodes.
bool is_stamped(ArmKind kind);

/// Planted faults (faults.h) that change how an arm's graph is built.
struct Faults {
  bool no_alias = false;     ///< copies read the original's input structs
  bool idle_copies = false;  ///< copies do nothing
  bool warm_copies = false;  ///< copies read what their originals have just read, and say otherwise
  /// Where the engine runs nodes together without fusing them, breaking that means to let copies join.
  static Faults planted_in(const GraphModel& model);
};

/// Time read by the clock nodes of one execution, by unit. Nanoseconds, price included.
struct UnitTimes {
  std::vector<int64_t> unit_ns, copy_ns;
  int64_t first_ns = 0, last_ns = 0;  ///< absolute time of the first and the last clock node
};

class ArmGraph {
 public:
  ArmGraph(const GraphModel& model, ArmKind kind, std::vector<UnitReplay> replays, WeightBank& weights,
           size_t shadow_limit_bytes, Faults faults);

  /// Bytes of scratch that the copies of the largest unit need.
  [[nodiscard]] size_t scratch_bytes() const { return scratch_bytes_; }
  /// The weights that each replay really got (same order as asked).
  [[nodiscard]] const std::vector<WeightChoice>& weights_used() const { return weights_used_; }
  /// The weights that each replay reads instead of the original's; empty for `same`.
  [[nodiscard]] const std::vector<std::vector<const ggml_tensor*>>& weights_read() const {
    return weights_read_;
  }

  /// Places in the graph last patched where a copy and what follows it, original or another copy, are of one
  /// op and read the same input struct: an engine that shares work between such neighbours would let the copy
  /// join its original's run. Views in between do not help, weights do not count.
  [[nodiscard]] int shared_inputs() const { return shared_inputs_; }

  /// The graph to execute for this call. `scratch` must hold scratch_bytes() and stay where it is.
  ggml_cgraph* patch(const ggml_cgraph* source, const Scratch& scratch);

  /// Adds the last execution's clock readings to `times`, whose vectors have one element per unit.
  void read_clocks(UnitTimes& times) const;
  [[nodiscard]] bool has_clocks() const { return !clocks_.empty(); }

 private:
  enum class Output { kKeep, kScratch, kSourceData, kView };
  struct Alias {
    ggml_tensor* tensor;
    int node, slot;
  };
  struct Copy {
    int original = 0;
    int instance = 0;  ///< copies of one unit made together
    ggml_tensor* tensor = nullptr;
    Output output = Output::kKeep;
    size_t offset = 0;            ///< in scratch
    ggml_tensor* root = nullptr;  ///< of a view inside the unit
    int root_original = 0;
    std::vector<std::pair<int, ggml_tensor*>> sources;  ///< slot, replacement
  };
  enum class Mark { kUnit, kCopies, kPrice, kIgnore, kEnd };
  struct Clock {
    Mark mark;
    int unit;
  };

  void build(const ggml_cgraph* source);
  void count_shared_inputs(const ggml_cgraph* built);
  /// The unit's nodes with what this arm puts around them; `replay` may be null.
  void append_unit(const ggml_cgraph* source, int unit, const UnitReplay* replay);
  void append_originals(const ggml_cgraph* source, int from, int to);
  void append_planted(int unit);
  /// All copies of a unit, behind a clock where the arm has clocks.
  void append_copies(const ggml_cgraph* source, const UnitReplay& replay);
  void append_one_copy(const ggml_cgraph* source, const UnitReplay& replay, int copy);
  void append_clock(Mark mark, int unit);
  void append_empty();
  void choose_output(const ggml_cgraph* source, const NodeIndex& members, Copy& copy, size_t& offset);
  void choose_sources(const ggml_cgraph* source, const NodeIndex& members, Copy& copy,
                      std::vector<std::pair<const ggml_tensor*, ggml_tensor*>>& aliases,
                      const UnitReplay& replay, int copy_number);
  const ggml_tensor* weight_for(const ggml_tensor* weight, const UnitReplay& replay, int copy_number);
  [[nodiscard]] std::vector<const ggml_tensor*> weights_of(const UnitNodes& unit) const;
  std::vector<const ggml_tensor*> replacements_for(const UnitReplay& replay);
  void decide_weights();
  size_t scratch_needed_by(const UnitNodes& unit) const;

  const GraphModel& model_;
  ArmKind kind_;
  std::vector<UnitReplay> replays_;
  WeightBank& weights_;
  size_t shadow_limit_bytes_;
  Faults faults_;
  size_t scratch_bytes_ = 0;
  int shared_inputs_ = 0;
  int instances_ = 0;
  std::vector<WeightChoice> weights_used_;
  std::vector<std::vector<const ggml_tensor*>> weights_read_;

  std::unique_ptr<GraphBuilder> builder_;
  std::vector<Copy> copies_;
  std::vector<Alias> aliases_;
  std::vector<std::pair<size_t, int>> originals_;  ///< place in the built graph, node of the source
  std::vector<const ggml_tensor*> seen_;           ///< the source's nodes at the last patch
  std::vector<Clock> clocks_;
  std::vector<int64_t> readings_;  ///< one per clock; fixed once built
};

}  // namespace opledger::ggml
