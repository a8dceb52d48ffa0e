#include "engines/ggml/probe.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "engines/ggml/backend_hook.h"
#include "engines/ggml/graph_builder.h"

namespace opledger::ggml {
namespace {

size_t extent_of(const ggml_tensor* tensor) {
  return aligned(ggml_nbytes(tensor));
}

/// Two values per type, so that a real output cannot equal both. Finite as f32 and as f16; small as integers,
/// which may be used as row numbers or expert ids.
uint32_t poison_for(ggml_type type, int round) {
  if (type == GGML_TYPE_I32 || type == GGML_TYPE_I64) return round == 0 ? 0U : 1U;
  return round == 0 ? 0x3f8c3f8cU : 0x3f193f19U;
}

void fill(char* data, size_t bytes, uint32_t word) {
  for (size_t i = 0; i + sizeof word <= bytes; i += sizeof word) std::memcpy(data + i, &word, sizeof word);
}

bool row_is_poison(const char* row, size_t bytes, uint32_t word) {
  uint32_t value;
  for (size_t i = 0; i + sizeof value <= bytes; i += sizeof value) {
    std::memcpy(&value, row + i, sizeof value);
    if (value != word) return false;
  }
  return bytes >= sizeof value;
}

/// Whether all elements of `tensor`, laid out at `data`, still hold the poison. Elements of a permuted view
/// are looked at one by one.
bool is_untouched(const ggml_tensor* tensor, const char* data, uint32_t word) {
  const bool has_rows = tensor->nb[0] == ggml_type_size(tensor->type);
  const size_t row_bytes =
      has_rows ? ggml_row_size(tensor->type, tensor->ne[0]) : ggml_type_size(tensor->type);
  const int64_t columns = has_rows ? 1 : tensor->ne[0];
  for (int64_t i3 = 0; i3 < tensor->ne[3]; ++i3)
    for (int64_t i2 = 0; i2 < tensor->ne[2]; ++i2)
      for (int64_t i1 = 0; i1 < tensor->ne[1]; ++i1)
        for (int64_t i0 = 0; i0 < columns; ++i0) {
          const size_t offset =
              static_cast<size_t>(i3) * tensor->nb[3] + static_cast<size_t>(i2) * tensor->nb[2] +
              static_cast<size_t>(i1) * tensor->nb[1] + static_cast<size_t>(i0) * tensor->nb[0];
          if (!row_is_poison(data + offset, row_bytes, word)) return false;
        }
  return true;
}

class Prober {
 public:
  Prober(ggml_backend_t backend, const ggml_cgraph* graph, const GraphModel& model)
      : backend_(backend), graph_(graph), model_(model), index_(index_nodes(graph)) {}

  size_t bytes_needed() const {
    size_t bytes = 0;
    for (int i = 0; i < graph_->n_nodes; ++i) {
      if (has_private_output(i)) bytes += extent_of(graph_->nodes[i]);
    }
    return bytes;
  }

  ProbeResult run() {
    ProbeResult result;
    result.was_written.resize(model_.nodes.size());
    joined_with_next_.assign(model_.nodes.size(), nullptr);
    if (!arena_.reserve(backend_, bytes_needed() + 128)) {
      result.reason = "no memory for private outputs";
      return result;
    }
    look_for_untouched_outputs(result);
    look_for_pairs();
    result.groups = groups();
    result.ran = true;
    return result;
  }

 private:
  [[nodiscard]] const NodeFacts& facts(int i) const { return model_.nodes[static_cast<size_t>(i)]; }

  /// KV writes go where they belong (the graph itself writes the same cells again afterwards).
  [[nodiscard]] bool has_private_output(int i) const {
    return !facts(i).is_view && facts(i).lasting != LeafKind::kKv;
  }

  void look_for_untouched_outputs(ProbeResult& result) {
    const auto n = static_cast<size_t>(graph_->n_nodes);
    std::vector<char> untouched(n, 1);
    for (int round = 0; round < 2; ++round) {
      private_graph_ = std::make_unique<GraphBuilder>(n, n);
      build_private_graph(*private_graph_, round);
      execute(backend_, private_graph_->finish(graph_));
      for (int i = 0; i < graph_->n_nodes; ++i) {
        const ggml_tensor* copy = copies_[static_cast<size_t>(i)];
        if (!untouched[static_cast<size_t>(i)]) continue;
        untouched[static_cast<size_t>(i)] =
            lies_in_arena(copy) && ggml_nelements(copy) > 0 &&
            is_untouched(copy, static_cast<const char*>(copy->data), poison_for(root_of(copy)->type, round));
      }
    }
    for (int i = 0; i < graph_->n_nodes; ++i) {
      if (has_private_output(i))
        result.was_written[static_cast<size_t>(i)] = !untouched[static_cast<size_t>(i)];
      if (untouched[static_cast<size_t>(i)]) join_with_readers(i);
    }
  }

  [[nodiscard]] bool lies_in_arena(const ggml_tensor* t) const {
    const char* data = static_cast<const char*>(t->data);
    return data >= arena_.data() && data < arena_.data() + arena_.size();
  }

  void build_private_graph(GraphBuilder& builder, int round) {
    copies_.assign(static_cast<size_t>(graph_->n_nodes), nullptr);
    size_t offset = 0;
    for (int i = 0; i < graph_->n_nodes; ++i) {
      const ggml_tensor* node = graph_->nodes[i];
      ggml_tensor* copy = builder.clone(node);
      copies_[static_cast<size_t>(i)] = copy;
      for (ggml_tensor*& source : copy->src) {
        const auto found = source == nullptr ? index_.end() : index_.find(source);
        // Up to and with itself: some trees' casts name themselves as a source.
        if (found != index_.end() && found->second <= i) source = copies_[static_cast<size_t>(found->second)];
      }
      if (has_private_output(i)) {
        copy->view_src = nullptr;
        copy->data = arena_.data() + offset;
        copy->buffer = arena_.buffer();
        fill(arena_.data() + offset, extent_of(node), poison_for(node->type, round));
        offset += extent_of(node);
      } else if (facts(i).is_view) {
        rebase(copy, node);
      }
      builder.append(copy, use_count_of(graph_, node));
    }
  }

  void rebase(ggml_tensor* copy, const ggml_tensor* node) {
    if (node->view_src == nullptr) return;
    const auto root = index_.find(node->view_src);
    if (root == index_.end() || copies_[static_cast<size_t>(root->second)] == nullptr) return;
    ggml_tensor* new_root = copies_[static_cast<size_t>(root->second)];
    copy->view_src = new_root;
    copy->data = static_cast<char*>(new_root->data) +
                 (static_cast<const char*>(node->data) - static_cast<const char*>(node->view_src->data));
  }

  /// Nodes that read node `i`, directly or through views of it.
  [[nodiscard]] std::vector<int> readers_of(int i) const {
    std::vector<int> readers;
    const ggml_tensor* node = graph_->nodes[i];
    for (int j = i + 1; j < graph_->n_nodes; ++j) {
      if (facts(j).is_view) continue;
      for (const ggml_tensor* source : graph_->nodes[j]->src) {
        if (source == nullptr) continue;
        const bool is_same_view = facts(i).is_view && source == node;
        const bool is_of_node = !facts(i).is_view && (source == node || root_of(source) == node);
        if (is_same_view || is_of_node) {
          readers.push_back(j);
          break;
        }
      }
    }
    return readers;
  }

  void join_with_readers(int i) {
    int first = i;
    if (facts(i).is_view) {
      const auto root = index_.find(root_of(graph_->nodes[i]));
      if (root == index_.end()) return;
      first = root->second;
    }
    const std::vector<int> readers = readers_of(i);
    // A dead output (nobody reads it) says nothing about fusion.
    if (!readers.empty()) join(first, readers.back(), "fused");
  }

  void join(int first, int last, const char* why) {
    for (int i = first; i < last; ++i) {
      joined_with_next_[static_cast<size_t>(i)] = why;
    }
  }

  /// Looks 2 and 3 on adjacent working nodes; one experiment per kind of pair.
  void look_for_pairs() {
    for (int i = 0; i + 1 < graph_->n_nodes; ++i) {
      if (facts(i).is_view || joined_with_next_[static_cast<size_t>(i)] != nullptr) continue;
      int next = i + 1;
      while (next < graph_->n_nodes && facts(next).is_view) ++next;
      if (next >= graph_->n_nodes) break;
      if (next == i + 1 && graph_->nodes[i]->op == graph_->nodes[next]->op) {
        if (shares_work(i, next)) join(i, next, "run");
      } else if (next > i + 1 && reads_through_view(i, next) && is_computed_early(i, next)) {
        join(i, next, "fused");
      }
    }
  }

  static std::string kind_of_pair(const ggml_tensor* a, const ggml_tensor* b) {
    std::string key;
    for (const ggml_tensor* t : {a, b}) {
      key += op_name_of(t);
      for (const ggml_tensor* s : t->src) {
        if (s == nullptr) continue;
        key += '|' + std::to_string(s->type);
        for (int64_t ne : s->ne) key += ',' + std::to_string(ne);
      }
      key += ';';
    }
    return key;
  }

  /// Slot of an activation (float, computed in this graph) that both read, and that `b` needs nothing else
  /// of `a` for; -1 when there is none.
  [[nodiscard]] int shared_slot(int a, int b) const {
    const ggml_tensor* first = graph_->nodes[a];
    const ggml_tensor* second = graph_->nodes[b];
    for (const ggml_tensor* s : second->src) {
      if (s != nullptr && (s == first || root_of(s) == first)) return -1;
    }
    for (int slot = 0; slot < GGML_MAX_SRC; ++slot) {
      const ggml_tensor* s = first->src[slot];
      if (s == nullptr || s != second->src[slot] || s->type != GGML_TYPE_F32) continue;
      const ggml_tensor* root = root_of(s);
      if (index_.count(s) > 0 || index_.count(root) > 0) return slot;
    }
    return -1;
  }

  bool shares_work(int a, int b) {
    const int slot = shared_slot(a, b);
    if (slot < 0 || facts(a).lasting || facts(b).lasting) return false;
    const std::string key =
        "run " + kind_of_pair(copies_[static_cast<size_t>(a)], copies_[static_cast<size_t>(b)]);
    const auto known = verdicts_.find(key);
    if (known != verdicts_.end()) return known->second;
    return verdicts_[key] = second_ignores_the_input(a, b, slot);
  }

  /// The first writes its output over the shared input. Equal answers of the second, with and without the
  /// first before it, mean that it never read the input again.
  bool second_ignores_the_input(int a, int b, int slot) {
    const ggml_tensor* first = copies_[static_cast<size_t>(a)];
    const ggml_tensor* second = copies_[static_cast<size_t>(b)];
    const ggml_tensor* input = first->src[slot];
    const size_t input_bytes = std::max(extent_of(input), extent_of(first));
    const size_t output_bytes = extent_of(second);
    Scratch scratch;
    if (!scratch.reserve(backend_, input_bytes + 2 * output_bytes)) return false;
    char* answers[2] = {scratch.data() + input_bytes, scratch.data() + input_bytes + output_bytes};
    fill(answers[0], 2 * output_bytes, poison_for(second->type, 0));
    for (int with_first = 0; with_first < 2; ++with_first) {
      std::memcpy(scratch.data(), input->data, ggml_nbytes(input));
      GraphBuilder builder(4, 4);
      ggml_tensor* shared = builder.clone(input);
      shared->data = scratch.data();
      for (const ggml_tensor* node : {first, second}) {
        if (node == first && with_first == 0) continue;
        ggml_tensor* copy = builder.clone(node);
        copy->src[slot] = shared;
        copy->data = node == first ? scratch.data() : answers[with_first];
        copy->buffer = scratch.buffer();
        builder.append(copy, 1);
      }
      execute(backend_, builder.finish(graph_));
    }
    return std::memcmp(answers[0], answers[1], ggml_nbytes(second)) == 0;
  }

  [[nodiscard]] bool reads_through_view(int a, int b) const {
    for (const ggml_tensor* s : graph_->nodes[b]->src) {
      if (s == nullptr || s == graph_->nodes[a] || root_of(s) != graph_->nodes[a]) continue;
      const auto view = index_.find(s);
      if (view != index_.end() && view->second > a && view->second < b) return true;
    }
    return false;
  }

  bool is_computed_early(int a, int b) {
    const std::string key =
        "early " + kind_of_pair(copies_[static_cast<size_t>(a)], copies_[static_cast<size_t>(b)]);
    const auto known = verdicts_.find(key);
    if (known != verdicts_.end()) return known->second;
    return verdicts_[key] = last_ignores_the_view(a, b);
  }

  /// Every view between the two lies over memory of its own. An answer of the last node that differs from
  /// what that memory gives was computed by the first.
  bool last_ignores_the_view(int a, int b) {
    std::vector<int> members{a};
    for (int i = a + 1; i <= b; ++i) members.push_back(i);
    const ggml_tensor* first = copies_[static_cast<size_t>(a)];
    const ggml_tensor* last = copies_[static_cast<size_t>(b)];
    const size_t first_bytes = extent_of(first);
    const size_t last_bytes = extent_of(last);
    Scratch scratch;
    if (!scratch.reserve(backend_, 2 * first_bytes + 2 * last_bytes)) return false;
    char* decoy = scratch.data() + first_bytes;
    fill(decoy, first_bytes, poison_for(first->type, 0));
    char* answers[2] = {decoy + first_bytes, decoy + first_bytes + last_bytes};
    // A row write leaves most of its table as it was: both answers start alike.
    fill(answers[0], 2 * last_bytes, poison_for(last->type, 0));
    for (int with_first = 0; with_first < 2; ++with_first) {
      GraphBuilder builder(members.size() + 1, members.size() + 1);
      std::map<const ggml_tensor*, ggml_tensor*> made;
      for (int i : members) {
        const ggml_tensor* node = copies_[static_cast<size_t>(i)];
        ggml_tensor* copy = builder.clone(node);
        made[node] = copy;
        for (ggml_tensor*& s : copy->src) {
          if (s != nullptr && made.count(s) > 0) s = made[s];
        }
        if (i == a) {
          copy->data = scratch.data();
        } else if (i == b) {
          copy->data = answers[with_first];
        } else if (root_of(node) == first) {
          copy->view_src = made[first];
          copy->data = decoy + (static_cast<const char*>(node->data) - static_cast<const char*>(first->data));
        }
        if (i == a && with_first == 0) continue;
        builder.append(copy, 1);
      }
      execute(backend_, builder.finish(graph_));
    }
    return std::memcmp(answers[0], answers[1], ggml_nbytes(last)) != 0;
  }

  /// Maximal stretches of joined nodes, each with the views of its members that follow it.
  [[nodiscard]] std::vector<UnitNodes> groups() const {
    std::vector<UnitNodes> groups;
    for (int i = 0; i < graph_->n_nodes; ++i) {
      if (joined_with_next_[static_cast<size_t>(i)] == nullptr) continue;
      UnitNodes group;
      group.why = "run";
      group.nodes.push_back(i);
      while (i < graph_->n_nodes && joined_with_next_[static_cast<size_t>(i)] != nullptr) {
        if (std::strcmp(joined_with_next_[static_cast<size_t>(i)], "fused") == 0) group.why = "fused";
        group.nodes.push_back(++i);
      }
      take_following_views(group);
      i = group.nodes.back();
      groups.push_back(std::move(group));
    }
    return groups;
  }

  void take_following_views(UnitNodes& group) const {
    for (int next = group.nodes.back() + 1; next < graph_->n_nodes && facts(next).is_view; ++next) {
      const auto root = index_.find(root_of(graph_->nodes[next]));
      if (root == index_.end() || root->second < group.nodes.front()) return;
      if (joined_with_next_[static_cast<size_t>(next)] != nullptr) return;
      group.nodes.push_back(next);
    }
  }

  ggml_backend_t backend_;
  const ggml_cgraph* graph_;
  const GraphModel& model_;
  NodeIndex index_;
  Scratch arena_;
  std::unique_ptr<GraphBuilder> private_graph_;  ///< owns copies_, whose data the later looks read
  std::vector<ggml_tensor*> copies_;
  std::vector<const char*> joined_with_next_;
  std::map<std::string, bool> verdicts_;
};

}  // namespace

ProbeResult probe_graph(ggml_backend_t backend, const ggml_cgraph* graph, const GraphModel& model,
                        size_t memory_limit_bytes) {
  Prober prober(backend, graph, model);
  if (prober.bytes_needed() > memory_limit_bytes) {
    ProbeResult result;
    result.reason = "private outputs need " + std::to_string(prober.bytes_needed()) +
                    " bytes, above the limit of " + std::to_string(memory_limit_bytes);
    return result;
  }
  return prober.run();
}

}  // namespace opledger::ggml
