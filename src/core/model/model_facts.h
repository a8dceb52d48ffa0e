// What a model file says about itself: scalars of its metadata and its tensors. Filled from a record or from
// a file's header by others; nothing here reads files.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace opledger::core {

struct ModelTensor {
  std::string name;
  std::string type;
  std::array<int64_t, 4> ne{1, 1, 1, 1};
  int64_t bytes = 0;
};

struct ModelFacts {
  std::string architecture;
  /// Scalars by their full key ("llama.block_count"); arrays are left out.
  std::map<std::string, std::variant<double, std::string>> metadata;
  std::vector<ModelTensor> tensors;

  /// A whole number under "ARCHITECTURE.suffix"; empty when the key is absent or no whole number.
  [[nodiscard]] std::optional<int64_t> count(std::string_view suffix) const;
  /// The tensor of that name, or null. Points into this object.
  [[nodiscard]] const ModelTensor* tensor(std::string_view name) const;
  /// Bytes of all tensors.
  [[nodiscard]] int64_t tensor_bytes() const;
};

}  // namespace opledger::core
