#include "engines/ggml/node_cost.h"

#include <algorithm>

namespace opledger::ggml {
namespace {

int64_t element_count(const ggml_tensor* t) {
  return t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
}

/// Rows that every expert tensor of a routed node multiplies: tokens times experts used.
int64_t routed_rows(const ggml_tensor* node, int ids_slot) {
  return element_count(node->src[ids_slot]);
}

NodeCost routed_cost(const ggml_tensor* node, int ids_slot, int64_t distinct) {
  NodeCost cost;
  const int64_t rows = routed_rows(node, ids_slot);
  for (int i = 0; i < GGML_MAX_SRC; ++i) {
    const ggml_tensor* source = node->src[i];
    if (source == nullptr) continue;
    const bool is_expert_weight = i < 2 && source->op == GGML_OP_NONE && source->ne[2] > 1;
    if (is_expert_weight) {
      const int64_t used = std::min(distinct < 0 ? rows : distinct, source->ne[2]);
      cost.read_bytes += payload_bytes(source) / source->ne[2] * used;
      cost.flop += 2 * source->ne[0] * source->ne[1] * rows;
    } else {
      cost.read_bytes += payload_bytes(source);
    }
  }
  return cost;
}

int64_t matrix_product_flop(const ggml_tensor* node) {
  const int64_t columns = element_count(node) / node->ne[0];
  int64_t flop = 0;
  // A fused up/gate product reads two weights and writes one result; a plain product reads one.
  for (int i = 0; i < 2; ++i) {
    const ggml_tensor* source = node->src[i];
    const bool is_operand =
        i == 0 || (source != nullptr && source->op == GGML_OP_NONE && node->src[2] != nullptr);
    if (is_operand && source != nullptr) flop += 2 * source->ne[0] * source->ne[1] * columns;
  }
  return flop;
}

int64_t attention_flop(const ggml_tensor* node) {
  const ggml_tensor* q = node->src[0];
  const ggml_tensor* k = node->src[1];
  const ggml_tensor* v = node->src[2];
  return 2 * q->ne[1] * q->ne[2] * q->ne[3] * k->ne[1] * (q->ne[0] + v->ne[0]);
}

int64_t flop_of(const ggml_tensor* node) {
  switch (static_cast<int>(node->op)) {
    case GGML_OP_MUL_MAT:
      return 2 * node->src[0]->ne[0] * element_count(node);
#if OPLEDGER_HAVE_OP_FUSED_UP_GATE
    case GGML_OP_FUSED_UP_GATE:
      return matrix_product_flop(node);
#endif
    case GGML_OP_FLASH_ATTN_EXT:
      return attention_flop(node);
#if OPLEDGER_HAVE_OP_GATED_DELTA_NET
    case GGML_OP_GATED_DELTA_NET:
#elif OPLEDGER_HAVE_OP_DELTA_NET
    case GGML_OP_DELTA_NET:
#endif
#if OPLEDGER_HAVE_OP_GATED_DELTA_NET || OPLEDGER_HAVE_OP_DELTA_NET
      // Per token and head on an S x S state: decay (1), read (2), rank-one update (2), output (2).
      return 7 * node->src[2]->ne[0] * element_count(node->src[2]);
#endif
    case GGML_OP_SSM_CONV:
      return 2 * node->src[node->src[2] == nullptr ? 1 : 2]->ne[0] * element_count(node);
    case GGML_OP_RMS_NORM:
    case GGML_OP_NORM:
    case GGML_OP_SOFT_MAX:
      return 4 * element_count(node);
    case GGML_OP_CPY:
    case GGML_OP_CONT:
    case GGML_OP_DUP:
    case GGML_OP_GET_ROWS:
    case GGML_OP_CONCAT:
      return 0;
    default:
      return element_count(node);
  }
}

/// Row moves touch the rows that they are told to, not the whole table.
bool row_move_cost(const ggml_tensor* node, NodeCost& cost) {
  if (node->op == GGML_OP_GET_ROWS) {
    const int64_t row_bytes = static_cast<int64_t>(ggml_row_size(node->src[0]->type, node->src[0]->ne[0]));
    cost.read_bytes = row_bytes * (element_count(node) / node->ne[0]) + payload_bytes(node->src[1]);
    cost.write_bytes = payload_bytes(node);
    return true;
  }
#if OPLEDGER_HAVE_OP_SET_ROWS
  if (node->op == GGML_OP_SET_ROWS) {
    const ggml_tensor* rows = node->src[0];
    cost.read_bytes = payload_bytes(rows) + payload_bytes(node->src[1]);
    cost.write_bytes =
        static_cast<int64_t>(ggml_row_size(node->type, rows->ne[0])) * (element_count(rows) / rows->ne[0]);
    return true;
  }
#endif
  if (node->op == GGML_OP_CPY) {
    cost.read_bytes = payload_bytes(node->src[0]);
    cost.write_bytes = payload_bytes(node);
    return true;
  }
  return false;
}

}  // namespace

int64_t payload_bytes(const ggml_tensor* tensor) {
  return static_cast<int64_t>(ggml_row_size(tensor->type, tensor->ne[0])) * tensor->ne[1] * tensor->ne[2] *
         tensor->ne[3];
}

int expert_ids_slot_of(const ggml_tensor* node) {
  const ggml_tensor* weight = node->src[0];
  if (weight == nullptr || weight->op != GGML_OP_NONE || weight->ne[2] <= 1) return -1;
  for (int i = 1; i < GGML_MAX_SRC; ++i) {
    if (node->src[i] != nullptr && node->src[i]->type == GGML_TYPE_I32) return i;
  }
  return -1;
}

NodeCost cost_of(const ggml_tensor* node, int expert_ids_slot, int64_t distinct_experts) {
  NodeCost cost;
  if (row_move_cost(node, cost)) return cost;
  if (expert_ids_slot >= 0) {
    cost = routed_cost(node, expert_ids_slot, distinct_experts);
  } else {
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
      if (node->src[i] != nullptr) cost.read_bytes += payload_bytes(node->src[i]);
    }
    cost.flop = flop_of(node);
  }
  cost.write_bytes = payload_bytes(node);
  return cost;
}

}  // namespace opledger::ggml
