// The one place that includes the driven tree's headers, and the small differences between trees that are not
// worth a file of their own. Which variant a tree has was found by CMake (OPLEDGER_HAVE_*).
#pragma once

#include "ggml-backend-impl.h"
#include "ggml-backend.h"
#include "ggml-impl.h"
#include "ggml.h"
#include "llama.h"

#if OPLEDGER_HAVE_GGUF_HEADER
#include "gguf.h"
#endif
#if OPLEDGER_HAVE_CPU_HEADER
#include "ggml-cpu.h"
#endif

#include <cstdint>
#include <time.h>

namespace opledger::ggml {

/// CLOCK_MONOTONIC in nanoseconds.
inline int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

/// The tensor that owns the memory that `tensor` views (itself when it is no view).
inline const ggml_tensor* root_of(const ggml_tensor* tensor) {
  while (tensor->view_src != nullptr) tensor = tensor->view_src;
  return tensor;
}

/// Whether executing the node does nothing: a view, or nothing to compute.
inline bool does_no_work(const ggml_tensor* node) {
  switch (node->op) {
    case GGML_OP_NONE:
    case GGML_OP_VIEW:
    case GGML_OP_RESHAPE:
    case GGML_OP_PERMUTE:
    case GGML_OP_TRANSPOSE:
      return true;
    default:
      return false;
  }
}

/// Marks a node of ours as one to execute: some trees skip nodes without this flag, and a skipped replay
/// costs nothing and looks free.
inline void mark_to_compute([[maybe_unused]] ggml_tensor* node) {
#if OPLEDGER_HAVE_FLAG_COMPUTE
  node->flags |= GGML_TENSOR_FLAG_COMPUTE;
#endif
}

}  // namespace opledger::ggml
