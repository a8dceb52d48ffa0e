// A graph of our own: the engine's nodes with ours between them. Nodes are put straight into the node array:
// ggml_build_forward_expand would raise the use counts of shared inputs, and the engine then refuses to fuse
// the original.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engines/ggml/tree.h"

namespace opledger::ggml {

/// Memory from the backend's own allocator, so that every backend can use it.
class Scratch {
 public:
  Scratch() = default;
  ~Scratch() { release(); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// Grows to at least `bytes`; true when there is that much. Earlier addresses end.
  bool reserve(ggml_backend_t backend, size_t bytes);
  void release();
  [[nodiscard]] char* data() const { return data_; }
  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] ggml_backend_buffer_t buffer() const { return buffer_; }

 private:
  ggml_backend_buffer_t buffer_ = nullptr;
  char* data_ = nullptr;
  size_t size_ = 0;
};

/// Outputs start on cache-line pairs, as the engines' own allocator aligns at least to a line.
inline size_t aligned(size_t bytes) {
  return (bytes + 127) / 128 * 128;
}

class GraphBuilder {
 public:
  /// Room for `nodes` nodes and `tensors` tensor structs.
  GraphBuilder(size_t nodes, size_t tensors);
  ~GraphBuilder();
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  /// A new tensor struct with the same contents: same data, other address.
  ggml_tensor* clone(const ggml_tensor* tensor);
  /// A one-element node that calls `function(…, userdata)` on the first thread.
  ggml_tensor* custom_node(ggml_custom1_op_t function, void* userdata);

  void append(ggml_tensor* node, int uses) { order_.push_back({node, uses}); }
  void clear() { order_.clear(); }
  [[nodiscard]] size_t size() const { return order_.size(); }
  /// Replaces the node at `position` without touching its use count.
  void put(size_t position, ggml_tensor* node) { order_[position].node = node; }
  void set_uses(size_t position, int uses) { order_[position].uses = uses; }

  /// Writes the node array; `use_counts_changed` when a node's address or use count may have changed.
  ggml_cgraph* finish(const ggml_cgraph* source, bool use_counts_changed = true);

 private:
  struct Entry {
    ggml_tensor* node;
    int uses;
  };
  ggml_context* context_ = nullptr;
  ggml_cgraph* graph_ = nullptr;
  ggml_tensor* nothing_ = nullptr;  ///< a NONE node: what may be looked at past the end
  ggml_tensor* one_ = nullptr;      ///< one float: input of custom nodes
  float one_value_ = 0;
  std::vector<std::unique_ptr<float>> custom_outputs_;
  size_t capacity_;
  std::vector<Entry> order_;
};

/// How often the graph says that `tensor` is used (1 on trees that do not count).
int use_count_of(const ggml_cgraph* graph, const ggml_tensor* tensor);

}  // namespace opledger::ggml
