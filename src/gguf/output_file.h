// A file that appears under its name only when it is whole. Private to src/gguf.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace opledger::gguf::detail {

/// Written beside its destination under a name that ends in .partial, renamed by commit(), removed when it is
/// destroyed before that. Owns the descriptor; not copyable.
class OutputFile {
 public:
  /// Reserves `bytes` on the disk, so that a disk without room is found before anything is computed.
  /// bad_input when the folder is missing or not writable or `path` is something other than a regular file;
  /// environment when there is no room.
  static Result<OutputFile> create(const std::filesystem::path& path, uint64_t bytes);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  Status append(std::span<const std::byte> bytes);
  Status append_zeros(uint64_t bytes);
  /// Bytes appended so far.
  [[nodiscard]] uint64_t size() const { return size_; }
  Status commit();

 private:
  OutputFile(int descriptor, std::filesystem::path partial, std::filesystem::path path);
  Status flush();
  [[nodiscard]] Error cannot_write(int error) const;

  int descriptor_ = -1;
  std::filesystem::path partial_;
  std::filesystem::path path_;
  std::vector<std::byte> buffer_;
  uint64_t size_ = 0;
};

}  // namespace opledger::gguf::detail
