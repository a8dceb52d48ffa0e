// Where a node's inputs really come from: through views, to the node that computed them or the tensor that
// holds them. And what a weight's name says: its role, whatever its layer, and its layer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"

namespace opledger::core {

/// What one source of a node is, views followed to their root. Exactly one of the two is set.
struct Root {
  int node = -1;                   ///< index of the working node that computed it, or -1
  const Tensor* tensor = nullptr;  ///< or the tensor; points into the graph
};

/// Root of `source` (as in Node::src). A view without a source (the engine hid it) is its own root.
Root root_of(const Graph& graph, int source);

/// Roots of all sources of a node, in order.
std::vector<Root> roots_of(const Graph& graph, const Node& node);

/// Weights that a node reads, in source order, without repeats.
std::vector<const Tensor*> weights_of(const Graph& graph, const Node& node);

/// What a weight is for: "blk.7.attn_q.weight" is "attn_q", "blk.7.attn_q.bias" stays "attn_q.bias",
/// "output.weight" is "output", "blk.0.ssm_a" is "ssm_a".
std::string role_of(std::string_view weight_name);

/// Layer of a weight ("blk.7.attn_q.weight") or of lasting memory ("cache_k_l7"); empty when the name has
/// none.
std::optional<int> layer_of_tensor(std::string_view name);

/// Layer in a node's name: "ffn_inp-7", "Qcur-7 (reshaped)"; empty when the name has none.
std::optional<int> layer_of_node(std::string_view name);

}  // namespace opledger::core
