#include "session/model_facts.h"

#include <type_traits>
#include <variant>

#include "gguf/facts.h"

namespace opledger::session {

core::ModelFacts core_facts_of(const gguf::GgufFile& file) {
  const gguf::ModelFacts facts = gguf::model_facts(file);
  core::ModelFacts core;
  core.architecture = facts.architecture;
  for (const auto& [key, value] : facts.metadata) {
    std::visit(
        [&, name = key](const auto& scalar) {
          if constexpr (std::is_arithmetic_v<std::decay_t<decltype(scalar)>>) {
            core.metadata[name] = static_cast<double>(scalar);
          } else {
            core.metadata[name] = scalar;
          }
        },
        value);
  }
  for (const gguf::TensorInfo& tensor : facts.tensors) {
    core.tensors.push_back({tensor.name, tensor.type, tensor.ne, static_cast<int64_t>(tensor.bytes)});
  }
  return core;
}

}  // namespace opledger::session
