#include "engines/ggml/arm_graph.h"

#include <algorithm>
#include <map>

#include "engines/ggml/faults.h"
#include "src/core/base/check.h"

namespace opledger::ggml {
namespace {

// Copies write here and read nothing from before it: engines may look a little behind an output.
constexpr size_t kScratchHead = 4096;

void read_clock(ggml_tensor*, const ggml_tensor*, int thread, int, void* reading) {
  if (thread == 0) *static_cast<int64_t*>(reading) = now_ns();
}

void do_nothing(ggml_tensor*, const ggml_tensor*, int, int, void*) {}

bool is_replay(ArmKind kind) {
  return kind == ArmKind::kReplay || kind == ArmKind::kStampedReplay;
}

}  // namespace

bool is_stamped(ArmKind kind) {
  return kind == ArmKind::kStamp || kind == ArmKind::kPrice || kind == ArmKind::kStampedReplay;
}

Faults Faults::planted_in(const GraphModel& model) {
  // A graph whose fused nodes were taken for single ones has no such unit left.
  const bool runs_together = std::any_of(model.units.begin(), model.units.end(), [&](const UnitNodes& unit) {
    return std::count_if(unit.nodes.begin(), unit.nodes.end(),
                         [&](int node) { return !model.nodes[static_cast<size_t>(node)].is_view; }) > 1;
  });
  return {has_fault("no_alias") || (has_fault("broken_fusion") && runs_together), has_fault("idle_copies"),
          has_fault("warm_copies")};
}

ArmGraph::ArmGraph(const GraphModel& model, ArmKind kind, std::vector<UnitReplay> replays,
                   WeightBank& weights, size_t shadow_limit_bytes, Faults faults)
    : model_(model),
      kind_(kind),
      replays_(std::move(replays)),
      weights_(weights),
      shadow_limit_bytes_(shadow_limit_bytes),
      faults_(faults) {
  decide_weights();
  for (const UnitReplay& replay : replays_) {
    scratch_bytes_ =
        std::max(scratch_bytes_, scratch_needed_by(model_.units[static_cast<size_t>(replay.unit)]));
  }
}

std::vector<const ggml_tensor*> ArmGraph::weights_of(const UnitNodes& unit) const {
  std::vector<const ggml_tensor*> weights;
  for (int node : unit.nodes) {
    for (int source : model_.nodes[static_cast<size_t>(node)].sources) {
      if (source >= 0) continue;
      const Leaf& leaf = model_.leaves[static_cast<size_t>(-1 - source)];
      if (leaf.kind == LeafKind::kWeight) weights.push_back(leaf.tensor);
    }
  }
  return weights;
}

/// All of a unit's weights get the same choice, for all of its copies, or none does.
std::vector<const ggml_tensor*> ArmGraph::replacements_for(const UnitReplay& replay) {
  std::vector<const ggml_tensor*> replacements;
  if (replay.weights == WeightChoice::kSame) return replacements;
  for (const ggml_tensor* weight : weights_of(model_.units[static_cast<size_t>(replay.unit)])) {
    for (int copy = 0; copy < replay.copies; ++copy) {
      const ggml_tensor* chosen = weight_for(weight, replay, copy);
      if (chosen == nullptr) return {};
      replacements.push_back(chosen);
    }
  }
  return replacements;
}

void ArmGraph::decide_weights() {
  for (UnitReplay& replay : replays_) {
    weights_read_.push_back(replacements_for(replay));
    const bool has_weights = !weights_of(model_.units[static_cast<size_t>(replay.unit)]).empty();
    if (has_weights && weights_read_.back().empty()) replay.weights = WeightChoice::kSame;
    weights_used_.push_back(replay.weights);
  }
}

size_t ArmGraph::scratch_needed_by(const UnitNodes& unit) const {
  size_t bytes = kScratchHead;
  for (int node : unit.nodes) bytes += aligned(model_.nodes[static_cast<size_t>(node)].extent_bytes);
  return bytes;
}

const ggml_tensor* ArmGraph::weight_for(const ggml_tensor* weight, const UnitReplay& replay,
                                        int copy_number) {
  if (faults_.warm_copies) return weight;
  if (replay.weights == WeightChoice::kSibling) {
    return weights_.sibling_of(weight, (copy_number + 1) * replay.stride);
  }
  if (replay.weights == WeightChoice::kShadow) {
    return weights_.shadow_of(weight, copy_number, shadow_limit_bytes_);
  }
  return weight;
}

ggml_cgraph* ArmGraph::patch(const ggml_cgraph* source, const Scratch& scratch) {
  OPLEDGER_CHECK(source->n_nodes == model_.node_count());
  OPLEDGER_CHECK(scratch.size() >= scratch_bytes_);
  if (builder_ == nullptr) build(source);
  for (const Alias& alias : aliases_) *alias.tensor = *source->nodes[alias.node]->src[alias.slot];
  for (const Copy& copy : copies_) {
    const ggml_tensor* original = source->nodes[copy.original];
    *copy.tensor = *original;
    for (const auto& [slot, replacement] : copy.sources) copy.tensor->src[slot] = replacement;
    if (copy.output == Output::kScratch) {
      copy.tensor->view_src = nullptr;
      copy.tensor->data = scratch.data() + copy.offset;
      copy.tensor->buffer = scratch.buffer();
    } else if (copy.output == Output::kSourceData) {
      copy.tensor->view_src = nullptr;
      copy.tensor->data = copy.tensor->src[0]->data;
    } else if (copy.output == Output::kView) {
      const ggml_tensor* root = source->nodes[copy.root_original];
      copy.tensor->view_src = copy.root;
      copy.tensor->data = static_cast<char*>(copy.root->data) +
                          (static_cast<const char*>(original->data) - static_cast<const char*>(root->data));
    }
    if (faults_.idle_copies) copy.tensor->op = GGML_OP_NONE;
  }
  const bool has_moved = !std::equal(seen_.begin(), seen_.end(), source->nodes);
  if (has_moved) {
    seen_.assign(source->nodes, source->nodes + source->n_nodes);
    for (const auto& [place, node] : originals_) {
      builder_->put(place, source->nodes[node]);
      builder_->set_uses(place, use_count_of(source, source->nodes[node]));
    }
  }
  ggml_cgraph* graph = builder_->finish(source, has_moved);
  if (has_moved) count_shared_inputs(graph);
  return graph;
}

void ArmGraph::count_shared_inputs(const ggml_cgraph* built) {
  std::map<const ggml_tensor*, int> instance_of;
  for (const Copy& copy : copies_) instance_of[copy.tensor] = copy.instance;
  shared_inputs_ = 0;
  for (int i = 0; i + 1 < built->n_nodes; ++i) {
    const ggml_tensor* copy = built->nodes[i];
    int after = i + 1;
    while (after + 1 < built->n_nodes && does_no_work(built->nodes[after])) ++after;
    const ggml_tensor* next = built->nodes[after];
    const auto instance = instance_of.find(copy);
    if (instance == instance_of.end() || copy->op != next->op || does_no_work(copy)) continue;
    const auto next_instance = instance_of.find(next);
    if (next_instance != instance_of.end() && next_instance->second == instance->second) continue;
    for (int slot = 0; slot < GGML_MAX_SRC; ++slot) {
      const ggml_tensor* input = copy->src[slot];
      if (input != nullptr && input == next->src[slot] && !weights_.knows(input)) ++shared_inputs_;
    }
  }
}

void ArmGraph::build(const ggml_cgraph* source) {
  const size_t units = model_.units.size();
  size_t extra_nodes = 2 * units + model_.planted.size() + 2;
  size_t tensors = extra_nodes;
  for (const UnitReplay& replay : replays_) {
    const size_t planted = model_.planted.count(replay.unit) * static_cast<size_t>(replay.copies);
    extra_nodes += planted;
    tensors += planted;
    for (int node : model_.units[static_cast<size_t>(replay.unit)].nodes) {
      extra_nodes += static_cast<size_t>(replay.copies);
      tensors +=
          static_cast<size_t>(replay.copies) * (1 + model_.nodes[static_cast<size_t>(node)].sources.size());
    }
  }
  const auto originals = static_cast<size_t>(source->n_nodes);
  builder_ = std::make_unique<GraphBuilder>(originals + extra_nodes, tensors);
  seen_.assign(originals, nullptr);
  readings_.assign(2 * units + replays_.size() + 2, 0);

  std::vector<const UnitReplay*> replay_of(units, nullptr);
  if (is_replay(kind_)) {
    for (const UnitReplay& replay : replays_) replay_of[static_cast<size_t>(replay.unit)] = &replay;
  }
  int next = 0;
  for (size_t u = 0; u < units; ++u) {
    const UnitNodes& unit = model_.units[u];
    append_originals(source, next, unit.nodes.front());
    append_unit(source, static_cast<int>(u), replay_of[u]);
    next = unit.nodes.back() + 1;
  }
  append_originals(source, next, source->n_nodes);
  if (is_stamped(kind_)) append_clock(Mark::kEnd, 0);
}

void ArmGraph::append_unit(const ggml_cgraph* source, int unit, const UnitReplay* replay) {
  const std::vector<int>& nodes = model_.units[static_cast<size_t>(unit)].nodes;
  if (kind_ == ArmKind::kEmpty) append_empty();
  if (replay != nullptr && !faults_.warm_copies) append_copies(source, *replay);
  if (kind_ == ArmKind::kPrice) append_clock(Mark::kPrice, unit);
  if (is_stamped(kind_)) append_clock(kind_ == ArmKind::kPrice ? Mark::kIgnore : Mark::kUnit, unit);
  append_originals(source, nodes.front(), nodes.back() + 1);
  append_planted(unit);
  if (replay != nullptr && faults_.warm_copies) append_copies(source, *replay);
}

void ArmGraph::append_planted(int unit) {
  const auto planted = model_.planted.find(unit);
  if (planted == model_.planted.end()) return;
  builder_->append(builder_->custom_node(execute_spin, planted->second.get()), 1);
}

void ArmGraph::append_originals(const ggml_cgraph* source, int from, int to) {
  for (int i = from; i < to; ++i) {
    originals_.emplace_back(builder_->size(), i);
    builder_->append(source->nodes[i], use_count_of(source, source->nodes[i]));
  }
}

void ArmGraph::append_clock(Mark mark, int unit) {
  OPLEDGER_CHECK(clocks_.size() < readings_.size());
  builder_->append(builder_->custom_node(read_clock, &readings_[clocks_.size()]), 1);
  clocks_.push_back({mark, unit});
}

void ArmGraph::append_empty() {
  builder_->append(builder_->custom_node(do_nothing, nullptr), 1);
}

void ArmGraph::append_copies(const ggml_cgraph* source, const UnitReplay& replay) {
  if (is_stamped(kind_)) append_clock(Mark::kCopies, replay.unit);
  for (int copy = 0; copy < replay.copies; ++copy) append_one_copy(source, replay, copy);
}

void ArmGraph::append_one_copy(const ggml_cgraph* source, const UnitReplay& replay, int copy_number) {
  NodeIndex members;  // node of the unit -> position in copies_
  std::vector<std::pair<const ggml_tensor*, ggml_tensor*>> aliases;
  size_t offset = kScratchHead;
  ++instances_;
  const UnitNodes& unit = model_.units[static_cast<size_t>(replay.unit)];
  int last_working = unit.nodes.back();
  while (model_.nodes[static_cast<size_t>(last_working)].is_view) --last_working;
  for (int node : unit.nodes) {
    // The views behind a unit also keep a copy apart from its original, so the fault leaves them out.
    if (faults_.no_alias && node > last_working) break;
    const ggml_tensor* original = source->nodes[node];
    Copy copy;
    copy.instance = instances_;
    copy.original = node;
    copy.tensor = builder_->clone(original);
    choose_output(source, members, copy, offset);
    choose_sources(source, members, copy, aliases, replay, copy_number);
    members.emplace(original, static_cast<int>(copies_.size()));
    builder_->append(copy.tensor, use_count_of(source, original));
    copies_.push_back(std::move(copy));
  }
  append_planted(replay.unit);
}

void ArmGraph::choose_output(const ggml_cgraph* source, const NodeIndex& members, Copy& copy,
                             size_t& offset) {
  const NodeFacts& facts = model_.nodes[static_cast<size_t>(copy.original)];
  const ggml_tensor* original = source->nodes[copy.original];
  if (facts.is_view) {
    const auto root = original->view_src == nullptr ? members.end() : members.find(original->view_src);
    if (root == members.end()) return;
    copy.output = Output::kView;
    copy.root = copies_[static_cast<size_t>(root->second)].tensor;
    copy.root_original = copies_[static_cast<size_t>(root->second)].original;
    return;
  }
  // Writing the same rows of the KV cache twice changes nothing; a recurrent state would move on.
  if (facts.lasting == LeafKind::kKv) return;
  if (facts.was_written == false && original->src[0] != nullptr && original->data == original->src[0]->data) {
    // Fused away and in place: some fused kernels read this node's memory for their input.
    copy.output = Output::kSourceData;
    return;
  }
  copy.output = Output::kScratch;
  copy.offset = offset;
  offset += aligned(facts.extent_bytes);
}

void ArmGraph::choose_sources(const ggml_cgraph* source, const NodeIndex& members, Copy& copy,
                              std::vector<std::pair<const ggml_tensor*, ggml_tensor*>>& aliases,
                              const UnitReplay& replay, int copy_number) {
  const ggml_tensor* original = source->nodes[copy.original];
  for (int slot = 0; slot < GGML_MAX_SRC; ++slot) {
    const ggml_tensor* input = original->src[slot];
    if (input == nullptr) continue;
    if (input == original) {
      copy.sources.emplace_back(slot, copy.tensor);  // a cast that names itself
    } else if (const auto member = members.find(input); member != members.end()) {
      copy.sources.emplace_back(slot, copies_[static_cast<size_t>(member->second)].tensor);
    } else if (weights_.knows(input)) {
      const ggml_tensor* weight = weight_for(input, replay, copy_number);
      copy.sources.emplace_back(slot, const_cast<ggml_tensor*>(weight));
    } else if (!faults_.no_alias) {
      // Another struct for the same data: an engine that shares work between neighbours with the same input
      // would otherwise let the copy join its original's run.
      ggml_tensor* alias = nullptr;
      for (const auto& [known, made] : aliases) {
        if (known == input) alias = made;
      }
      if (alias == nullptr) {
        alias = builder_->clone(input);
        aliases.emplace_back(input, alias);
        aliases_.push_back({alias, copy.original, slot});
      }
      copy.sources.emplace_back(slot, alias);
    }
  }
}

void ArmGraph::read_clocks(UnitTimes& times) const {
  if (clocks_.empty()) return;
  if (times.first_ns == 0) times.first_ns = readings_[0];
  times.last_ns = readings_[clocks_.size() - 1];
  for (size_t i = 0; i + 1 < clocks_.size(); ++i) {
    const int64_t interval_ns = readings_[i + 1] - readings_[i];
    const auto unit = static_cast<size_t>(clocks_[i].unit);
    switch (clocks_[i].mark) {
      case Mark::kUnit:
      case Mark::kPrice:
        times.unit_ns[unit] += interval_ns;
        break;
      case Mark::kCopies:
        times.copy_ns[unit] += interval_ns;
        break;
      case Mark::kIgnore:
      case Mark::kEnd:
        break;
    }
  }
}

}  // namespace opledger::ggml
