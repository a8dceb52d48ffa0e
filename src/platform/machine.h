// Facts about this machine that a record carries: what runs, how much of it we may use. Nothing is timed
// here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/record/record.h"

namespace opledger::platform {

/// Reads hwloc, /proc and uname. `cores` are those that this process may use; `cpu` is "unknown" when the
/// kernel gives no name; `memory_bytes` is the container's limit if that is lower than what is installed.
core::MachineFacts machine_facts();

/// Memory that can be taken now without swapping, in bytes; empty when the kernel does not say. Honours a
/// cgroup limit where there is one.
std::optional<int64_t> available_memory_bytes();

/// Environment variables ("NAME=value", sorted) that change how a ggml engine runs: OMP_*, GOMP_*, KMP_*,
/// GGML_*, LLAMA_*; and ours that do so on purpose, OPLEDGER_GGML_* and OPLEDGER_TEST_*.
std::vector<std::string> engine_environment();

namespace detail {
/// The extensions named in a /proc/cpuinfo flags line (or an arm64 Features line).
std::vector<std::string> isa_from_flags(std::string_view flags_line);
/// The value after `key` and a colon in text of "key : value" lines; empty when absent.
std::string value_of(std::string_view text, std::string_view key);
}  // namespace detail

}  // namespace opledger::platform
