// The tensor types that GGUF files carry, of llama.cpp and ik_llama.cpp alike: names and sizes, nothing else.
// Does not decode weights.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace opledger::gguf {

/// One ggml type. A row of n weights takes row_extra_bytes + n / block_weights * block_bytes.
struct TensorType {
  uint32_t id = 0;
  std::string_view name;  ///< as ggml spells it: f32, q4_K, iq4_ks, ...
  uint32_t block_weights = 1;
  uint32_t block_bytes = 0;
  uint32_t row_extra_bytes = 0;
};

/// Null for an id that neither engine has.
const TensorType* find_type(uint32_t id);

/// By ggml's name, upper or lower case alike ("Q4_K", "q4_K"). Null when there is none.
const TensorType* find_type(std::string_view name);

/// Bytes of a tensor of that type and shape. Empty when a row is not a whole number of blocks, a dimension
/// is not positive, or the result does not fit 63 bits.
std::optional<uint64_t> tensor_bytes(const TensorType& type, const std::array<int64_t, 4>& ne);

}  // namespace opledger::gguf
