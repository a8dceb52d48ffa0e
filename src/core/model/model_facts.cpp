// Look-ups in a model's facts. An absent key stays absent: no default is invented here.
#include "core/model/model_facts.h"

#include <algorithm>
#include <cmath>

namespace opledger::core {

std::optional<int64_t> ModelFacts::count(std::string_view suffix) const {
  const auto found = metadata.find(architecture + "." + std::string(suffix));
  if (found == metadata.end()) return std::nullopt;
  const double* value = std::get_if<double>(&found->second);
  // Counts beyond 2^53 are not exact as a double, and no model has them.
  if (value == nullptr || std::floor(*value) != *value || std::abs(*value) > 9007199254740992.0) {
    return std::nullopt;
  }
  return static_cast<int64_t>(*value);
}

const ModelTensor* ModelFacts::tensor(std::string_view name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const ModelTensor& entry) { return entry.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

int64_t ModelFacts::tensor_bytes() const {
  int64_t bytes = 0;
  for (const auto& entry : tensors) bytes += entry.bytes;
  return bytes;
}

}  // namespace opledger::core
