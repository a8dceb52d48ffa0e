#include "engines/ggml/planted.h"

namespace opledger::ggml {
namespace {

// Ending this much after its time, a spin was preempted.
constexpr int64_t kLateNs = 20'000;

}  // namespace

SpinCount& SpinCount::operator+=(const SpinCount& other) {
  spins += other.spins;
  spun_ns += other.spun_ns;
  late_spins += other.late_spins;
  late_ns += other.late_ns;
  return *this;
}

void execute_spin(ggml_tensor*, const ggml_tensor*, int thread, int, void* userdata) {
  if (thread != 0) return;
  auto* spin = static_cast<Spin*>(userdata);
  const int64_t began_ns = now_ns();
  int64_t spun_ns = 0;
  do {
    spun_ns = now_ns() - began_ns;
  } while (spun_ns < spin->asked_ns);
  const bool is_late = spun_ns >= spin->asked_ns + kLateNs;
  spin->count += {1, spun_ns, is_late ? 1 : 0, is_late ? spun_ns : 0};
}

}  // namespace opledger::ggml
