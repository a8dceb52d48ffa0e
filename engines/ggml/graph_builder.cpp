#include "engines/ggml/graph_builder.h"

#include "src/core/base/check.h"

namespace opledger::ggml {
namespace {

// ik_llama.cpp's SSM_CONV looks two nodes ahead without asking whether there are any.
constexpr size_t kNodesPastTheEnd = 2;

}  // namespace

bool Scratch::reserve(ggml_backend_t backend, size_t bytes) {
  if (bytes <= size_) return true;
  release();
  buffer_ = ggml_backend_alloc_buffer(backend, bytes);
  if (buffer_ == nullptr) return false;
  data_ = static_cast<char*>(ggml_backend_buffer_get_base(buffer_));
  size_ = bytes;
  return true;
}

void Scratch::release() {
  if (buffer_ != nullptr) ggml_backend_buffer_free(buffer_);
  buffer_ = nullptr;
  data_ = nullptr;
  size_ = 0;
}

GraphBuilder::GraphBuilder(size_t nodes, size_t tensors) : capacity_(nodes + kNodesPastTheEnd) {
  const size_t bytes = ggml_graph_overhead_custom(capacity_, false) + ggml_tensor_overhead() * (tensors + 2);
  context_ = ggml_init({bytes, nullptr, /*no_alloc=*/true});
  graph_ = ggml_new_graph_custom(context_, capacity_, false);
  nothing_ = ggml_new_tensor_1d(context_, GGML_TYPE_F32, 1);
  one_ = ggml_new_tensor_1d(context_, GGML_TYPE_F32, 1);
  one_->data = &one_value_;
  nothing_->data = &one_value_;
  order_.reserve(nodes);
}

GraphBuilder::~GraphBuilder() {
  ggml_free(context_);
}

ggml_tensor* GraphBuilder::clone(const ggml_tensor* tensor) {
  ggml_tensor* copy = ggml_new_tensor(context_, tensor->type, GGML_MAX_DIMS, tensor->ne);
  *copy = *tensor;
  return copy;
}

ggml_tensor* GraphBuilder::custom_node(ggml_custom1_op_t function, void* userdata) {
  ggml_tensor* node = ggml_map_custom1(context_, one_, function, 1, userdata);
  custom_outputs_.push_back(std::make_unique<float>(0.0F));
  node->data = custom_outputs_.back().get();
  mark_to_compute(node);
  return node;
}

ggml_cgraph* GraphBuilder::finish([[maybe_unused]] const ggml_cgraph* source,
                                  [[maybe_unused]] bool use_counts_changed) {
  OPLEDGER_CHECK(order_.size() + kNodesPastTheEnd <= capacity_);
  graph_->n_nodes = static_cast<int>(order_.size());
  for (size_t i = 0; i < order_.size(); ++i) graph_->nodes[i] = order_[i].node;
  for (size_t i = 0; i < kNodesPastTheEnd; ++i) graph_->nodes[order_.size() + i] = nothing_;
#if OPLEDGER_HAVE_GRAPH_N_BATCH
  graph_->n_batch = source->n_batch;
#endif
#if OPLEDGER_HAVE_USE_COUNTS
  if (use_counts_changed) {
    ggml_hash_set_reset(&graph_->visited_hash_set);
    for (const Entry& entry : order_) {
      const size_t slot = ggml_hash_insert(&graph_->visited_hash_set, entry.node);
      if (slot != GGML_HASHSET_ALREADY_EXISTS) graph_->use_counts[slot] = entry.uses;
    }
  }
#endif
  return graph_;
}

int use_count_of([[maybe_unused]] const ggml_cgraph* graph, [[maybe_unused]] const ggml_tensor* tensor) {
#if OPLEDGER_HAVE_USE_COUNTS
  const size_t slot = ggml_hash_find(&graph->visited_hash_set, tensor);
  if (slot == GGML_HASHSET_FULL || !ggml_bitset_get(graph->visited_hash_set.used, slot)) return 0;
  return graph->use_counts[slot];
#else
  return 1;
#endif
}

}  // namespace opledger::ggml
