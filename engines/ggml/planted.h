// Work of known size, planted into an engine: a node of ours that spins behind a unit's last node, in every
// arm and in every copy of that unit. It touches no memory of the engine, and counts what it does.
#pragma once

#include <cstdint>

#include "engines/ggml/tree.h"

namespace opledger::ggml {

/// What was really spun. A late spin was preempted: medians over passes leave out what preemption costs, so a
/// mean of all spins would not be what they measure.
struct SpinCount {
  int64_t spins = 0, spun_ns = 0;
  int64_t late_spins = 0, late_ns = 0;  ///< of these

  SpinCount& operator+=(const SpinCount& other);
  friend SpinCount operator-(const SpinCount& x, const SpinCount& y) {
    return {x.spins - y.spins, x.spun_ns - y.spun_ns, x.late_spins - y.late_spins, x.late_ns - y.late_ns};
  }
};

struct Spin {
  int64_t asked_ns = 0;
  SpinCount count;
};

/// The node's function; `spin` is a Spin. The first thread spins, the others wait for it at the barrier.
void execute_spin(ggml_tensor*, const ggml_tensor*, int thread, int, void* spin);

}  // namespace opledger::ggml
