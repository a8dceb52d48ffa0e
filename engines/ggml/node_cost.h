// Bytes that a node must move and FLOPs that it must do, from shapes and types alone. Multiply-add counts 2.
// Matrix products, attention and linear attention are exact; element-wise ops count one FLOP per output
// element and normalisations four, which no check depends on (they hold under 1% of a pass).
#pragma once

#include <cstdint>

#include "engines/ggml/tree.h"

namespace opledger::ggml {

struct NodeCost {
  int64_t read_bytes = 0, write_bytes = 0, flop = 0;
};

/// Bytes of a tensor's elements, without gaps between rows.
int64_t payload_bytes(const ggml_tensor* tensor);

/// `distinct_experts` < 0: unknown, then as many as the routing could select at most.
NodeCost cost_of(const ggml_tensor* node, int expert_ids_slot, int64_t distinct_experts);

/// The source slot that holds expert ids (i32, beside a weight of three dimensions); -1 for other nodes.
int expert_ids_slot_of(const ggml_tensor* node);

}  // namespace opledger::ggml
