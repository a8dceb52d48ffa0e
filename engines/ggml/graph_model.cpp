#include "engines/ggml/graph_model.h"

#include <cstdio>
#include <cstring>
#include <xxhash.h>

#include "engines/ggml/node_cost.h"

namespace opledger::ggml {
namespace {

bool starts_with(const char* text, const char* prefix) {
  return std::strncmp(text, prefix, std::strlen(prefix)) == 0;
}

LeafKind leaf_kind_of(const ggml_tensor* leaf, const std::set<std::string>& weight_names) {
  const char* name = leaf->name;
  if (starts_with(name, "cache_k") || starts_with(name, "cache_v")) return LeafKind::kKv;
  if (starts_with(name, "cache_r") || starts_with(name, "cache_s")) return LeafKind::kState;
  if (weight_names.count(name) > 0) return LeafKind::kWeight;
  if (leaf->buffer != nullptr &&
      ggml_backend_buffer_get_usage(leaf->buffer) == GGML_BACKEND_BUFFER_USAGE_WEIGHTS) {
    return LeafKind::kWeight;  // merged or derived by the engine when it loaded the file
  }
  if ((leaf->flags & GGML_TENSOR_FLAG_INPUT) != 0) return LeafKind::kInput;
  return LeafKind::kOther;
}

/// Some trees' casts name themselves as a source, for the sake of their shape.
bool is_source(const ggml_tensor* node, int slot) {
  return node->src[slot] != nullptr && node->src[slot] != node;
}

bool is_in_place(const ggml_tensor* node) {
  for (int i = 0; i < GGML_MAX_SRC; ++i) {
    if (is_source(node, i) && node->src[i]->data == node->data) return true;
  }
  return false;
}

NodeLook look_of(const ggml_tensor* node) {
  NodeLook look{op_name_of(node), node->name, ggml_type_name(node->type), {}, {}};
  for (size_t i = 0; i < look.ne.size(); ++i) {
    look.ne[i] = node->ne[i];
    look.nb[i] = static_cast<int64_t>(node->nb[i]);
  }
  return look;
}

class Describer {
 public:
  Describer(const ggml_cgraph* graph, const std::set<std::string>& weight_names)
      : graph_(graph), weight_names_(weight_names), index_(index_nodes(graph)) {}

  GraphModel describe() {
    for (int i = 0; i < graph_->n_nodes; ++i) {
      model_.nodes.push_back(facts_of(graph_->nodes[i]));
      model_.looks.push_back(look_of(graph_->nodes[i]));
    }
    model_.signature = signature_of(graph_);
    set_units(model_, {});
    return std::move(model_);
  }

 private:
  NodeFacts facts_of(const ggml_tensor* node) {
    NodeFacts facts;
    facts.is_view = does_no_work(node) || ggml_nelements(node) == 0;
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
      if (is_source(node, i)) facts.sources.push_back(reference_to(node->src[i]));
    }
    facts.extent_bytes = ggml_nbytes(node);
    if (facts.is_view) return facts;
    facts.is_in_place = is_in_place(node);
    facts.lasting = lasting_memory_of(node);
    facts.expert_ids = expert_ids_slot_of(node);
    if (facts.expert_ids >= 0) {
      facts.routed_used = node->src[facts.expert_ids]->ne[0];
      facts.routed_tokens = node->src[facts.expert_ids]->ne[1];
    }
    const NodeCost cost = cost_of(node, facts.expert_ids, -1);
    facts.read_bytes = cost.read_bytes;
    facts.write_bytes = cost.write_bytes;
    facts.flop = cost.flop;
    return facts;
  }

  /// A node writes lasting memory when the tensor that it views is no node of the graph.
  std::optional<LeafKind> lasting_memory_of(const ggml_tensor* node) {
    const ggml_tensor* root = root_of(node);
    if (root == node || index_.count(root) > 0) return std::nullopt;
    const LeafKind kind = leaf_kind_of(root, weight_names_);
    leaf_index(root);
    // Unknown lasting memory is treated as state: copies must never write to it.
    return kind == LeafKind::kKv ? LeafKind::kKv : LeafKind::kState;
  }

  int reference_to(const ggml_tensor* source) {
    const auto node = index_.find(source);
    if (node != index_.end()) return node->second;
    return -1 - leaf_index(source);
  }

  int leaf_index(const ggml_tensor* leaf) {
    const auto [position, is_new] = leaf_index_.try_emplace(leaf, static_cast<int>(model_.leaves.size()));
    if (is_new) model_.leaves.push_back({leaf, leaf_kind_of(leaf, weight_names_)});
    return position->second;
  }

  const ggml_cgraph* graph_;
  const std::set<std::string>& weight_names_;
  NodeIndex index_;
  NodeIndex leaf_index_;
  GraphModel model_;
};

void hash_tensor(XXH3_state_t* state, const ggml_tensor* tensor) {
  XXH3_128bits_update(state, &tensor->op, sizeof tensor->op);
  XXH3_128bits_update(state, &tensor->type, sizeof tensor->type);
  XXH3_128bits_update(state, tensor->ne, sizeof tensor->ne);
  XXH3_128bits_update(state, tensor->name, std::strlen(tensor->name) + 1);
  // A view's parameters hold its offset into the cache, which moves with every token.
  if (!does_no_work(tensor)) {
    XXH3_128bits_update(state, tensor->op_params, sizeof tensor->op_params);
    XXH3_128bits_update(state, tensor->nb, sizeof tensor->nb);
  }
}

}  // namespace

NodeIndex index_nodes(const ggml_cgraph* graph) {
  NodeIndex index;
  index.reserve(static_cast<size_t>(graph->n_nodes));
  for (int i = 0; i < graph->n_nodes; ++i) index.emplace(graph->nodes[i], i);
  return index;
}

std::string signature_of(const ggml_cgraph* graph) {
  const NodeIndex index = index_nodes(graph);
  XXH3_state_t* state = XXH3_createState();
  XXH3_128bits_reset(state);
  for (int i = 0; i < graph->n_nodes; ++i) {
    const ggml_tensor* node = graph->nodes[i];
    hash_tensor(state, node);
    for (int j = 0; j < GGML_MAX_SRC && node->src[j] != nullptr; ++j) {
      const auto source = index.find(node->src[j]);
      if (source == index.end()) {
        hash_tensor(state, node->src[j]);
      } else {
        XXH3_128bits_update(state, &source->second, sizeof source->second);
      }
    }
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text;
}

GraphModel describe_graph(ggml_backend_t backend, const ggml_cgraph* graph,
                          const std::set<std::string>& weight_names) {
  GraphModel model = Describer(graph, weight_names).describe();
  model.device = ggml_backend_name(backend);
  return model;
}

void set_units(GraphModel& model, const std::vector<UnitNodes>& groups) {
  std::vector<int> group_of(model.nodes.size(), -1);
  for (size_t g = 0; g < groups.size(); ++g) {
    for (int node : groups[g].nodes) group_of[static_cast<size_t>(node)] = static_cast<int>(g);
  }
  model.units.clear();
  for (int i = 0; i < model.node_count(); ++i) {
    const int group = group_of[static_cast<size_t>(i)];
    if (group < 0) {
      if (!model.nodes[static_cast<size_t>(i)].is_view) model.units.push_back({{i}, "single"});
    } else if (groups[static_cast<size_t>(group)].nodes.front() == i) {
      model.units.push_back(groups[static_cast<size_t>(group)]);
    }
  }
}

std::string op_name_of(const ggml_tensor* node) {
  if (node->op == GGML_OP_UNARY) return std::string("UNARY:") + ggml_unary_op_name(ggml_get_unary_op(node));
#if OPLEDGER_HAVE_OP_GLU
  if (node->op == GGML_OP_GLU) return std::string("GLU:") + ggml_glu_op_name(ggml_get_glu_op(node));
#endif
  return ggml_op_name(node->op);
}

WeightRole role_of(const char* weight_name) {
  WeightRole role;
  int consumed = 0;
  if (std::sscanf(weight_name, "blk.%d.%n", &role.layer, &consumed) != 1 || consumed == 0) {
    return {-1, weight_name};
  }
  role.role = weight_name + consumed;
  return role;
}

}  // namespace opledger::ggml
