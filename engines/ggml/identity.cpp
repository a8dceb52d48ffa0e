#include "engines/ggml/identity.h"

#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <iterator>
#include <link.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>
#include <xxhash.h>

#include "engines/ggml/faults.h"
#include "engines/ggml/tree.h"

namespace opledger::ggml {
namespace {

using nlohmann::json;

std::string xxh3_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  XXH3_state_t* state = XXH3_createState();
  XXH3_64bits_reset(state);
  std::vector<char> chunk(size_t{1} << 20);
  while (file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || file.gcount() > 0) {
    XXH3_64bits_update(state, chunk.data(), static_cast<size_t>(file.gcount()));
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(XXH3_64bits_digest(state)));
  XXH3_freeState(state);
  return text;
}

int collect_library(dl_phdr_info* info, size_t, void* list) {
  const std::string path = info->dlpi_name;
  if (path.find("libllama") != std::string::npos || path.find("libggml") != std::string::npos) {
    static_cast<std::vector<std::string>*>(list)->push_back(path);
  }
  return 0;
}

json libraries() {
  std::vector<std::string> paths;
  dl_iterate_phdr(collect_library, &paths);
  json all = json::array();
  for (const std::string& path : paths) {
    struct stat info {};
    stat(path.c_str(), &info);
    all.push_back({{"path", path}, {"bytes", info.st_size}, {"xxh3", xxh3_of_file(path)}});
  }
  return all;
}

/// Instruction sets that the engine says it was built for.
json instruction_sets() {
  json isa = json::array();
  const auto add = [&](const char* name, int has) {
    if (has != 0) isa.push_back(name);
  };
  add("AVX", ggml_cpu_has_avx());
  add("AVX2", ggml_cpu_has_avx2());
  add("F16C", ggml_cpu_has_f16c());
  add("FMA", ggml_cpu_has_fma());
  add("AVX_VNNI", ggml_cpu_has_avx_vnni());
  add("AVX512", ggml_cpu_has_avx512());
  add("AVX512_VBMI", ggml_cpu_has_avx512_vbmi());
  add("AVX512_VNNI", ggml_cpu_has_avx512_vnni());
  add("AVX512_BF16", ggml_cpu_has_avx512_bf16());
  return isa;
}

std::string family() {
  constexpr const char* kGiven = OPLEDGER_GGML_FAMILY;
  if (kGiven[0] != '\0') return kGiven;
#if OPLEDGER_HAVE_OP_FUSED_UP_GATE
  return "ik_llama.cpp";
#else
  return "llama.cpp";
#endif
}

std::string version() {
#if OPLEDGER_HAVE_VERSION
  return std::string("ggml ") + ggml_version() + " commit " + ggml_commit();
#else
  return "ggml without a version";
#endif
}

}  // namespace

json identity_json() {
  return {{"protocol", kProtocol},
          {"adapter", {{"name", "ggml"}, {"version", "0.1.0"}}},
          {"engine",
           {{"family", family()},
            {"version", version()},
            {"build", {{"system_info", llama_print_system_info()}}},
            {"libraries", libraries()}}},
          {"device",
           {{"kind", "cpu"},
            {"name", "CPU"},
            {"isa", instruction_sets()},
            {"cores", sysconf(_SC_NPROCESSORS_ONLN)}}},
          {"capabilities",
           {{"arms", {"baseline", "unhooked", "empty", "price", "stamp", "replay", "stamped_replay"}},
            {"weights", {"same", "sibling", "shadow"}},
            {"workloads", {"prefill", "decode"}},
            {"tokenize", true},
            {"logits", true},
            {"state_digest", true},
            {"probe", true},
            {"routing", true},
            {"plant", true},
            {"faults", kOfferedFaults},
            {"standalone", false},
            {"timeline", false}}}};
}

}  // namespace opledger::ggml
