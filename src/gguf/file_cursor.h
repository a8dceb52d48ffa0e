// A read position in a file whose size is known: the only way in which the GGUF reader touches bytes.
// Refuses to step past the end. Private to src/gguf.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <type_traits>
#include <vector>

#include "core/base/result.h"

namespace opledger::gguf::detail {

/// Buffered sequential reads. Not copyable: owns the descriptor.
class FileCursor {
 public:
  /// bad_input when the path is missing, a directory, not a regular file, or unreadable.
  static Result<FileCursor> open(const std::filesystem::path& path);
  FileCursor(FileCursor&& other) noexcept;
  FileCursor& operator=(FileCursor&&) = delete;
  FileCursor(const FileCursor&) = delete;
  FileCursor& operator=(const FileCursor&) = delete;
  ~FileCursor();

  [[nodiscard]] uint64_t position() const { return position_; }
  [[nodiscard]] uint64_t size() const { return size_; }
  [[nodiscard]] uint64_t remaining() const { return size_ - position_; }

  /// Copies the next `bytes` bytes. False, with the position unchanged, when the file does not hold them.
  bool read(void* destination, size_t bytes);
  /// Steps over `bytes` bytes without reading them. False when the file does not hold them.
  bool skip(uint64_t bytes);

  template <typename T>
  bool read_value(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return read(&value, sizeof(T));
  }

 private:
  FileCursor(int descriptor, uint64_t size) : descriptor_(descriptor), size_(size) {}
  bool fill();

  int descriptor_ = -1;
  uint64_t size_ = 0;
  uint64_t position_ = 0;
  uint64_t buffer_start_ = 0;
  size_t buffer_bytes_ = 0;
  std::vector<std::byte> buffer_;
};

}  // namespace opledger::gguf::detail
