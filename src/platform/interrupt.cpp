// The handler may only touch lock-free atomics and call async-signal-safe functions: hence the fixed array.
#include "platform/interrupt.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <unistd.h>

#include "core/base/check.h"

namespace opledger::platform {
namespace {

constexpr int kExitInterrupted = 130;

std::array<std::atomic<pid_t>, 64> protected_groups{};
std::atomic<int> signals_seen{0};
std::atomic<int> wake_write_fd{-1};
int wake_read_fd = -1;
struct sigaction old_int {};
struct sigaction old_term {};

void on_signal(int /*signal*/) {
  const int saved_errno = errno;
  if (signals_seen.fetch_add(1) >= 1) {
    for (auto& group : protected_groups) {
      if (const pid_t id = group.load(); id > 0) ::kill(-id, SIGKILL);
    }
    ::_exit(kExitInterrupted);
  }
  const char byte = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_write_fd.load(), &byte, 1);
  errno = saved_errno;
}

}  // namespace

Interrupt::Interrupt() {
  OPLEDGER_CHECK(wake_write_fd.load() < 0);
  int ends[2] = {-1, -1};
  OPLEDGER_CHECK(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
  wake_read_fd = ends[0];
  wake_write_fd.store(ends[1]);
  signals_seen.store(0);
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, &old_int);
  ::sigaction(SIGTERM, &action, &old_term);
}

Interrupt::~Interrupt() {
  ::sigaction(SIGINT, &old_int, nullptr);
  ::sigaction(SIGTERM, &old_term, nullptr);
  ::close(wake_read_fd);
  ::close(wake_write_fd.exchange(-1));
  wake_read_fd = -1;
}

bool Interrupt::is_requested() const {
  return signals_seen.load() > 0;
}

int Interrupt::fd() const {
  return wake_read_fd;
}

void protect_group(pid_t group) {
  for (auto& slot : protected_groups) {
    pid_t empty = 0;
    if (slot.compare_exchange_strong(empty, group)) return;
  }
}

void forget_group(pid_t group) {
  for (auto& slot : protected_groups) {
    pid_t expected = group;
    if (slot.compare_exchange_strong(expected, 0)) return;
  }
}

}  // namespace opledger::platform
