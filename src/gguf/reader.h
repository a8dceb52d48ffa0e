// Reads what a GGUF file says about itself: metadata and the tensor directory, versions 2 and 3.
// Every count, length, offset and size is checked against the file before anything trusts it, because what
// passes here is handed to engines, and some of them crash on a damaged file. Never reads weights.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/result.h"

namespace opledger::gguf {

/// A metadata value, widened: unsigned, signed, floating point, truth, text.
using Scalar = std::variant<uint64_t, int64_t, double, bool, std::string>;

/// A metadata array. Values are kept for at most kKeptElements numbers or truths; texts are only counted.
struct ArrayValue {
  std::string type;  ///< of the elements: u8, i8, u16, i16, u32, i32, f32, bool, text, u64, i64, f64
  uint64_t count = 0;
  std::vector<Scalar> values;  ///< empty when not kept
};
inline constexpr uint64_t kKeptElements = 1024;

struct TensorInfo {
  std::string name;
  std::string type;  ///< ggml's name: f32, q4_K, ...
  std::array<int64_t, 4> ne{1, 1, 1, 1};
  uint64_t offset = 0;  ///< from the start of the file
  uint64_t bytes = 0;
};

struct GgufFile {
  std::filesystem::path path;
  uint64_t file_bytes = 0;
  uint32_t version = 0;
  uint64_t alignment_bytes = 32;
  uint64_t data_offset = 0;  ///< from the start of the file
  std::map<std::string, Scalar, std::less<>> metadata;
  std::map<std::string, ArrayValue, std::less<>> arrays;
  std::vector<TensorInfo> tensors;  ///< in the file's order

  /// The value of a key that holds a whole number that fits; empty when it is absent or something else.
  [[nodiscard]] std::optional<int64_t> integer(std::string_view key) const;
  /// The value of a key that holds any number; empty otherwise.
  [[nodiscard]] std::optional<double> number(std::string_view key) const;
  /// The value of a key that holds text; empty otherwise.
  [[nodiscard]] std::optional<std::string> text(std::string_view key) const;
};

/// Reads the header of `path`. Every failure is bad_input with one line that names the file, the key or
/// tensor, and the byte. Reads only the header, through a small buffer: a vocabulary costs milliseconds.
Result<GgufFile> read_gguf(const std::filesystem::path& path);

}  // namespace opledger::gguf
