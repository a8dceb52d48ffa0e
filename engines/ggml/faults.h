// What can be planted in the method to see that the checks notice: for tests and self-tests only. `load` asks
// for one of the offered faults; the environment variable OPLEDGER_GGML_FAULT for any.
#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

#include "src/core/base/result.h"

namespace opledger::ggml {

/// The protocol's names (docs/protocol.md).
inline constexpr std::array<const char*, 4> kOfferedFaults{"broken_fusion", "changed_result", "idle_copies",
                                                           "warm_copies"};

inline bool has_fault(const char* name) {
  const char* fault = std::getenv("OPLEDGER_GGML_FAULT");
  return fault != nullptr && std::strcmp(fault, name) == 0;
}

/// For the rest of the process. Bad input naming what is offered.
inline Status plant_fault(const std::string& name) {
  std::string offered;
  for (const char* one : kOfferedFaults) {
    if (name == one) {
      ::setenv("OPLEDGER_GGML_FAULT", one, 1);
      return {};
    }
    offered += std::string(offered.empty() ? "" : ", ") + one;
  }
  return Error::bad_input("load: fault " + name + " is unknown; offered are " + offered);
}

}  // namespace opledger::ggml
