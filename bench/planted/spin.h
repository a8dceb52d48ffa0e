// A spin that counts itself, for C11 and C++. bench/planted.py puts calls of it into a copy of an engine's
// tree, to see whether the ledger finds the time in the row that it was planted in. It does nothing unless
// the environment asks for it: OPLEDGER_TEST_SPIN=KERNEL:NANOSECONDS. At the end of the process every file
// that spun appends a line {"kernel", "count", "spun_ns", "late_count", "late_ns", "pid"} to the file
// OPLEDGER_TEST_SPIN_LOG. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// Ending this much after its time, a spin was preempted. Such spins are counted apart: the ledger's medians
// pass over what preemption costs, wherever it strikes, and a mean over all spins would not.
#define OPLEDGER_SPIN_LATE_NS 20000

struct opledger_spin_state {
  char kernel[32];
  int64_t asked_ns;  // 0: nothing was asked for
  int64_t count;
  int64_t spun_ns;
  int64_t late_count;
  int64_t late_ns;
};
static struct opledger_spin_state opledger_spinning;

static inline int64_t opledger_spin_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Which spin belongs to a product with this weight; "" for none.
static inline const char* opledger_spin_of_weight(const char* weight) {
  if (strncmp(weight, "blk.", 4) == 0) return "dense";
  if (strncmp(weight, "output.weight", 14) == 0 || strncmp(weight, "token_embd.weight", 18) == 0)
    return "lm_head";
  return "";
}

// Every thread of a node spins, thread 0 counts. Were thread 0 to spin alone, kernels that hand out chunks on
// demand would give its share to the others meanwhile: the node would slow down by less than the spin.
static inline void opledger_spin(const char* kernel, int thread) {
  if (opledger_spinning.asked_ns == 0 || strcmp(kernel, opledger_spinning.kernel) != 0) return;
  const int64_t began_ns = opledger_spin_now_ns();
  int64_t spun_ns = 0;
  while (spun_ns < opledger_spinning.asked_ns) spun_ns = opledger_spin_now_ns() - began_ns;
  if (thread != 0) return;
  __atomic_fetch_add(&opledger_spinning.count, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&opledger_spinning.spun_ns, spun_ns, __ATOMIC_RELAXED);
  if (spun_ns < opledger_spinning.asked_ns + OPLEDGER_SPIN_LATE_NS) return;
  __atomic_fetch_add(&opledger_spinning.late_count, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&opledger_spinning.late_ns, spun_ns, __ATOMIC_RELAXED);
}

__attribute__((constructor)) static void opledger_spin_begin(void) {
  const char* text = getenv("OPLEDGER_TEST_SPIN");
  const char* colon = text == NULL ? NULL : strchr(text, ':');
  if (colon == NULL || (size_t)(colon - text) >= sizeof opledger_spinning.kernel) return;
  memcpy(opledger_spinning.kernel, text, (size_t)(colon - text));
  opledger_spinning.asked_ns = atoll(colon + 1);
}

__attribute__((destructor)) static void opledger_spin_end(void) {
  const char* path = getenv("OPLEDGER_TEST_SPIN_LOG");
  if (path == NULL || opledger_spinning.count == 0) return;
  FILE* log = fopen(path, "a");
  if (log == NULL) {
    fprintf(stderr, "opledger_spin: cannot append to %s: the spins of this process are lost\n", path);
    return;
  }
  // One line is one write: several processes append to the same file.
  fprintf(log,
          "{\"kernel\": \"%s\", \"count\": %lld, \"spun_ns\": %lld, \"late_count\": %lld, \"late_ns\": %lld, "
          "\"pid\": %ld}\n",
          opledger_spinning.kernel, (long long)opledger_spinning.count, (long long)opledger_spinning.spun_ns,
          (long long)opledger_spinning.late_count, (long long)opledger_spinning.late_ns, (long)getpid());
  fclose(log);
}
