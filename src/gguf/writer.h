// Writes GGUF version 3: metadata, tensor directory, then each tensor's bytes as somebody produces them.
// Holds no weights itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/result.h"
#include "gguf/types.h"

namespace opledger::gguf {

/// A metadata value in the type that the file shall hold.
using Value = std::variant<uint32_t, int32_t, uint64_t, float, bool, std::string, std::vector<int32_t>>;

struct TensorSpec {
  std::string name;
  const TensorType* type = nullptr;
  std::vector<int64_t> ne;  ///< one to four dimensions
};

/// Everything of a file but the weights.
struct Layout {
  std::vector<std::pair<std::string, Value>> metadata;
  std::vector<TensorSpec> tensors;
};

/// Takes a piece of the tensor that is being written.
using Sink = std::function<Status(std::span<const std::byte>)>;
/// Gives the bytes of tensor `index` to the sink, in order and exactly as many as its shape says.
using Source = std::function<Status(size_t index, const Sink& sink)>;

/// Bytes of one tensor. Its shape must be possible for its type: anything else is our bug.
uint64_t bytes_of(const TensorSpec& tensor);

/// Bytes of the whole file.
uint64_t file_bytes(const Layout& layout);

/// Writes under a temporary name and renames at the end: a failure leaves nothing behind. bad_input when the
/// destination cannot be written, environment when there is no room (found before anything is computed).
Status write_gguf(const Layout& layout, const std::filesystem::path& path, const Source& source);

}  // namespace opledger::gguf
