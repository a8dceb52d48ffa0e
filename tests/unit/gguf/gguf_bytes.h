// Builds GGUF files byte by byte, as the published format describes them, so that the reader is tested
// against the format and not against our own writer.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <unistd.h>

namespace opledger::gguf::test {

/// Little-endian bytes appended one field at a time.
class Bytes {
 public:
  Bytes& raw(std::string_view text) {
    data_.append(text);
    return *this;
  }
  template <typename T>
  Bytes& value(T v) {
    char field[sizeof(T)];
    std::memcpy(field, &v, sizeof(T));
    data_.append(field, sizeof(T));
    return *this;
  }
  Bytes& u32(uint32_t v) { return value(v); }
  Bytes& u64(uint64_t v) { return value(v); }
  Bytes& text(std::string_view t) { return u64(t.size()).raw(t); }
  Bytes& pad_to(size_t multiple) {
    data_.resize((data_.size() + multiple - 1) / multiple * multiple, '\0');
    return *this;
  }
  Bytes& zeros(size_t n) {
    data_.append(n, '\0');
    return *this;
  }
  [[nodiscard]] const std::string& str() const { return data_; }
  [[nodiscard]] size_t size() const { return data_.size(); }

 private:
  std::string data_;
};

/// A directory of its own, removed at the end.
class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "opledger-gguf-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  [[nodiscard]] std::filesystem::path file(const std::string& name) const { return path_ / name; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline void write_file(const std::filesystem::path& path, std::string_view bytes) {
  // Removed first: truncating makes ext4 write the old file out, ten milliseconds each time.
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace opledger::gguf::test
