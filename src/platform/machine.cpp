// hwloc for what the process may use and for caches, /proc for what the processor calls itself.
#include "platform/machine.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <hwloc.h>
#include <iterator>
#include <sstream>
#include <sys/utsname.h>
#include <utility>

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX names it, no header must

namespace opledger::platform {
namespace {

std::string text_of(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<int64_t> leading_number(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end == text.data()) return std::nullopt;
  return number;
}

/// Bytes from a "Key:  123 kB" line of /proc/meminfo.
std::optional<int64_t> meminfo_bytes(std::string_view meminfo, std::string_view key) {
  const auto kib = leading_number(detail::value_of(meminfo, key));
  if (!kib) return std::nullopt;
  return *kib * 1024;
}

void read_topology(core::MachineFacts& facts) {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return;
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  if (hwloc_topology_load(topology) == 0) {
    if (const int units = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU); units > 0) facts.cores = units;
    const auto cache_bytes = [&](hwloc_obj_type_t type) -> std::optional<int64_t> {
      const hwloc_obj_t cache = hwloc_get_obj_by_type(topology, type, 0);
      if (cache == nullptr || cache->attr == nullptr || cache->attr->cache.size == 0) return std::nullopt;
      return static_cast<int64_t>(cache->attr->cache.size);
    };
    facts.l2_bytes = cache_bytes(HWLOC_OBJ_L2CACHE);
    facts.l3_bytes = cache_bytes(HWLOC_OBJ_L3CACHE);
  }
  hwloc_topology_destroy(topology);
}

}  // namespace

namespace detail {

std::string value_of(std::string_view text, std::string_view key) {
  size_t start = 0;
  while (start < text.size()) {
    const size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line = text.substr(start, end - start);
    const size_t colon = line.find(':');
    if (colon != std::string_view::npos) {
      std::string_view name = line.substr(0, colon);
      while (!name.empty() && (name.back() == ' ' || name.back() == '\t')) name.remove_suffix(1);
      if (name == key) {
        std::string_view value = line.substr(colon + 1);
        while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
        return std::string(value);
      }
    }
    start = end + 1;
  }
  return {};
}

std::vector<std::string> isa_from_flags(std::string_view flags_line) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 20> kKnown{{
      {"ssse3", "SSSE3"},
      {"sse4_2", "SSE42"},
      {"avx", "AVX"},
      {"avx2", "AVX2"},
      {"f16c", "F16C"},
      {"fma", "FMA"},
      {"bmi2", "BMI2"},
      {"avx_vnni", "AVX_VNNI"},
      {"avx512f", "AVX512F"},
      {"avx512bw", "AVX512BW"},
      {"avx512vl", "AVX512VL"},
      {"avx512_vnni", "AVX512_VNNI"},
      {"avx512_vbmi", "AVX512_VBMI"},
      {"avx512_bf16", "AVX512_BF16"},
      {"amx_int8", "AMX_INT8"},
      {"asimd", "NEON"},
      {"asimddp", "DOTPROD"},
      {"i8mm", "MATMUL_INT8"},
      {"sve", "SVE"},
      {"sme", "SME"},
  }};
  std::istringstream words{std::string(flags_line)};
  std::vector<std::string> present{std::istream_iterator<std::string>(words), {}};
  std::vector<std::string> isa;
  for (const auto& [flag, name] : kKnown) {
    if (std::find(present.begin(), present.end(), flag) != present.end()) isa.emplace_back(name);
  }
  return isa;
}

}  // namespace detail

core::MachineFacts machine_facts() {
  core::MachineFacts facts;
  const std::string cpuinfo = text_of("/proc/cpuinfo");
  facts.cpu = detail::value_of(cpuinfo, "model name");
  if (facts.cpu.empty()) facts.cpu = "unknown";
  const std::string x86_flags = detail::value_of(cpuinfo, "flags");
  facts.isa = detail::isa_from_flags(x86_flags.empty() ? detail::value_of(cpuinfo, "Features") : x86_flags);
  if (!x86_flags.empty())
    facts.is_virtual = (" " + x86_flags + " ").find(" hypervisor ") != std::string::npos;
  read_topology(facts);
  facts.memory_bytes = meminfo_bytes(text_of("/proc/meminfo"), "MemTotal").value_or(0);
  if (const auto limit = leading_number(text_of("/sys/fs/cgroup/memory.max")); limit) {
    facts.memory_bytes = std::min(facts.memory_bytes, *limit);
  }
  utsname names{};
  if (::uname(&names) == 0) facts.kernel = names.release;
  return facts;
}

std::optional<int64_t> available_memory_bytes() {
  std::optional<int64_t> available = meminfo_bytes(text_of("/proc/meminfo"), "MemAvailable");
  const auto limit = leading_number(text_of("/sys/fs/cgroup/memory.max"));
  const auto used = leading_number(text_of("/sys/fs/cgroup/memory.current"));
  if (limit && used) {
    const int64_t left = std::max<int64_t>(*limit - *used, 0);
    available = available ? std::min(*available, left) : left;
  }
  return available;
}

std::vector<std::string> engine_environment() {
  // Ours change what the adapter does (OPLEDGER_GGML_FAULT) or a patched engine (OPLEDGER_TEST_SPIN). The
  // others that begin with OPLEDGER_ say where things lie.
  static constexpr std::array<std::string_view, 7> kPrefixes{
      "OMP_", "GOMP_", "KMP_", "GGML_", "LLAMA_", "OPLEDGER_GGML_", "OPLEDGER_TEST_"};
  std::vector<std::string> found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    for (const std::string_view prefix : kPrefixes) {
      if (text.substr(0, prefix.size()) == prefix) found.emplace_back(text);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace opledger::platform
