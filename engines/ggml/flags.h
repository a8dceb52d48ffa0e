// The engine's flags, by the names llama-bench users know. A table: one entry per flag that this tree has.
#pragma once

#include <map>
#include <string>

#include "engines/ggml/tree.h"
#include "src/core/base/result.h"

namespace opledger::ggml {

struct EngineParameters {
  llama_model_params model;
  llama_context_params context;
};

/// Applies `flags` to `parameters`, and completes `in_force` with every flag's value, defaults included.
/// bad_input names the flag and what is accepted.
Status apply_flags(const std::map<std::string, std::string>& flags, EngineParameters& parameters,
                   std::map<std::string, std::string>& in_force);

}  // namespace opledger::ggml
