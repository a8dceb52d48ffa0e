#include "engines/ggml/flags.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

namespace opledger::ggml {
namespace {

struct Flag {
  std::string name;
  std::string accepts;
  std::function<std::string(EngineParameters&)> value;               ///< as it stands in the parameters
  std::function<bool(EngineParameters&, const std::string&)> apply;  ///< false: not an accepted value
};

std::optional<bool> parse_bool(const std::string& text) {
  if (text == "1" || text == "on" || text == "true") return true;
  if (text == "0" || text == "off" || text == "false") return false;
  return std::nullopt;
}

/// `field` gives a reference to the parameter, whose default is the engine's own.
template <typename Field>
Flag bool_flag(std::string name, Field field) {
  return {std::move(name), "0 or 1",
          [field](EngineParameters& p) { return std::string(field(p) ? "1" : "0"); },
          [field](EngineParameters& p, const std::string& text) {
            const auto value = parse_bool(text);
            if (value) field(p) = *value;
            return value.has_value();
          }};
}

std::optional<ggml_type> parse_type(const std::string& text) {
  for (int i = 0; i < GGML_TYPE_COUNT; ++i) {
    const char* name = ggml_type_name(static_cast<ggml_type>(i));
    if (name != nullptr && text == name) return static_cast<ggml_type>(i);
  }
  return std::nullopt;
}

template <typename Field>
Flag type_flag(std::string name, Field field) {
  return {std::move(name), "a ggml type such as f16, bf16, q8_0, q4_0",
          [field](EngineParameters& p) { return std::string(ggml_type_name(field(p))); },
          [field](EngineParameters& p, const std::string& text) {
            const auto type = parse_type(text);
            if (type) field(p) = *type;
            return type.has_value();
          }};
}

Flag gpu_layers_flag() {
  return {"ngl", "0: only the CPU backend is validated", [](EngineParameters&) { return std::string("0"); },
          [](EngineParameters&, const std::string& text) { return text == "0"; }};
}

#if OPLEDGER_HAVE_FLASH_ATTN_TYPE
Flag flash_attention_flag() {
  return {"fa", "0, 1 or auto",
          [](EngineParameters& p) {
            if (p.context.flash_attn_type == LLAMA_FLASH_ATTN_TYPE_AUTO) return std::string("auto");
            return std::string(p.context.flash_attn_type == LLAMA_FLASH_ATTN_TYPE_ENABLED ? "1" : "0");
          },
          [](EngineParameters& p, const std::string& text) {
            const auto on = parse_bool(text);
            if (text == "auto") p.context.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_AUTO;
            if (on) {
              p.context.flash_attn_type =
                  *on ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
            }
            return on.has_value() || text == "auto";
          }};
}
#else
Flag flash_attention_flag() {
  return bool_flag("fa", [](EngineParameters& p) -> bool& { return p.context.flash_attn; });
}
#endif

#if OPLEDGER_HAVE_LOAD_MODE
Flag mmap_flag() {
  return {
      "mmp", "0 or 1",
      [](EngineParameters& p) { return std::string(p.model.load_mode == LLAMA_LOAD_MODE_NONE ? "0" : "1"); },
      [](EngineParameters& p, const std::string& text) {
        const auto on = parse_bool(text);
        if (on) p.model.load_mode = *on ? LLAMA_LOAD_MODE_MMAP : LLAMA_LOAD_MODE_NONE;
        return on.has_value();
      }};
}
#elif OPLEDGER_HAVE_USE_MMAP
Flag mmap_flag() {
  return bool_flag("mmp", [](EngineParameters& p) -> bool& { return p.model.use_mmap; });
}
#endif

// The name of a parameter on the left, where it lies on the right.
#define OPLEDGER_BOOL_FLAG(name, where) bool_flag(name, [](EngineParameters& p) -> bool& { return p.where; })

std::vector<Flag> all_flags() {
  std::vector<Flag> flags{
      gpu_layers_flag(), flash_attention_flag(), mmap_flag(),
      type_flag("ctk", [](EngineParameters& p) -> ggml_type& { return p.context.type_k; }),
      type_flag("ctv", [](EngineParameters& p) -> ggml_type& { return p.context.type_v; })};
#if OPLEDGER_HAVE_EXTRA_BUFTS
  flags.push_back(OPLEDGER_BOOL_FLAG("repack", model.use_extra_bufts));
#endif
#if OPLEDGER_HAVE_SWA_FULL
  flags.push_back(OPLEDGER_BOOL_FLAG("swa-full", context.swa_full));
#endif
#if OPLEDGER_HAVE_REPACK_TENSORS
  flags.push_back(OPLEDGER_BOOL_FLAG("rtr", model.repack_tensors));
#endif
#if OPLEDGER_HAVE_MERGE_QKV
  flags.push_back(OPLEDGER_BOOL_FLAG("mqkv", model.merge_qkv));
  flags.push_back(OPLEDGER_BOOL_FLAG("muge", model.merge_up_gate_exps));
#endif
#if OPLEDGER_HAVE_FUSED_MOE
  flags.push_back(OPLEDGER_BOOL_FLAG("fmoe", context.fused_moe_up_gate));
  flags.push_back(OPLEDGER_BOOL_FLAG("fug", context.fused_up_gate));
#endif
#if OPLEDGER_HAVE_ROPE_CACHE
  flags.push_back(OPLEDGER_BOOL_FLAG("rcache", context.rope_cache));
#endif
#if OPLEDGER_HAVE_GRAPH_REUSE
  flags.push_back(OPLEDGER_BOOL_FLAG("gr", context.graph_reuse));
#endif
  return flags;
}

std::string names_of(const std::vector<Flag>& flags) {
  std::string names;
  for (const Flag& flag : flags) {
    if (!names.empty()) names += ", ";
    names += flag.name;
  }
  return names;
}

}  // namespace

Status apply_flags(const std::map<std::string, std::string>& flags, EngineParameters& parameters,
                   std::map<std::string, std::string>& in_force) {
  const std::vector<Flag> known = all_flags();
  for (const auto& asked : flags) {
    const bool is_known =
        std::any_of(known.begin(), known.end(), [&](const Flag& flag) { return flag.name == asked.first; });
    if (is_known) continue;
    std::string message = "unknown engine flag ";
    message.append(asked.first).append("=").append(asked.second);
    message.append(": this engine accepts ").append(names_of(known));
    return Error::bad_input(std::move(message));
  }
  for (const Flag& flag : known) {
    const auto asked = flags.find(flag.name);
    if (asked != flags.end() && !flag.apply(parameters, asked->second)) {
      return Error::bad_input("engine flag " + flag.name + "=" + asked->second + ": accepted is " +
                              flag.accepts);
    }
    in_force[flag.name] = flag.value(parameters);
  }
  return {};
}

}  // namespace opledger::ggml
