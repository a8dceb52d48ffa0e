// The header is small and built in memory; the weights are streamed.
#include "gguf/writer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>

#include "core/base/check.h"
#include "gguf/output_file.h"

namespace opledger::gguf {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF values are written as they lie in memory");

constexpr uint64_t kAlignment = 32;
constexpr uint32_t kVersion = 3;
// Value types of the specification.
constexpr uint32_t kValueU32 = 4, kValueI32 = 5, kValueF32 = 6, kValueBool = 7, kValueText = 8,
                   kValueArray = 9, kValueU64 = 10;

uint64_t padded(uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

template <typename T>
void put(std::vector<std::byte>& out, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  const size_t at = out.size();
  out.resize(at + sizeof(T));
  std::memcpy(out.data() + at, &value, sizeof(T));
}

void put_text(std::vector<std::byte>& out, std::string_view text) {
  put<uint64_t>(out, text.size());
  for (const char c : text) out.push_back(static_cast<std::byte>(c));
}

struct ValueWriter {
  std::vector<std::byte>& out;
  void operator()(uint32_t v) const { put(out, kValueU32), put(out, v); }
  void operator()(int32_t v) const { put(out, kValueI32), put(out, v); }
  void operator()(uint64_t v) const { put(out, kValueU64), put(out, v); }
  void operator()(float v) const { put(out, kValueF32), put(out, v); }
  void operator()(bool v) const { put(out, kValueBool), put<uint8_t>(out, v ? 1 : 0); }
  void operator()(const std::string& v) const { put(out, kValueText), put_text(out, v); }
  void operator()(const std::vector<int32_t>& v) const {
    put(out, kValueArray), put(out, kValueI32), put<uint64_t>(out, v.size());
    for (const int32_t x : v) put(out, x);
  }
};

std::vector<std::byte> header_of(const Layout& layout) {
  std::vector<std::byte> out;
  for (const char c : std::string_view("GGUF")) out.push_back(static_cast<std::byte>(c));
  put(out, kVersion);
  put<uint64_t>(out, layout.tensors.size());
  put<uint64_t>(out, layout.metadata.size());
  for (const auto& [key, value] : layout.metadata) {
    put_text(out, key);
    std::visit(ValueWriter{out}, value);
  }
  uint64_t offset = 0;
  for (const TensorSpec& tensor : layout.tensors) {
    put_text(out, tensor.name);
    put<uint32_t>(out, static_cast<uint32_t>(tensor.ne.size()));
    for (const int64_t n : tensor.ne) put<uint64_t>(out, static_cast<uint64_t>(n));
    put<uint32_t>(out, tensor.type->id);
    put<uint64_t>(out, offset);
    offset += padded(bytes_of(tensor));
  }
  out.resize(padded(out.size()));
  return out;
}

}  // namespace

uint64_t bytes_of(const TensorSpec& tensor) {
  OPLEDGER_CHECK(!tensor.ne.empty() && tensor.ne.size() <= 4);
  std::array<int64_t, 4> ne{1, 1, 1, 1};
  std::copy(tensor.ne.begin(), tensor.ne.end(), ne.begin());
  const std::optional<uint64_t> bytes = tensor_bytes(*tensor.type, ne);
  OPLEDGER_CHECK(bytes.has_value());
  return bytes.value_or(0);
}

uint64_t file_bytes(const Layout& layout) {
  uint64_t bytes = header_of(layout).size();
  for (const TensorSpec& tensor : layout.tensors) bytes += padded(bytes_of(tensor));
  return bytes;
}

Status write_gguf(const Layout& layout, const std::filesystem::path& path, const Source& source) {
  Result<detail::OutputFile> file = detail::OutputFile::create(path, file_bytes(layout));
  if (!file) return file.error();
  if (Status s = file->append(header_of(layout)); !s) return s;
  for (size_t i = 0; i < layout.tensors.size(); ++i) {
    const uint64_t end = file->size() + bytes_of(layout.tensors[i]);
    if (Status s = source(i, [&](std::span<const std::byte> bytes) { return file->append(bytes); }); !s)
      return s;
    OPLEDGER_CHECK(file->size() == end);
    if (Status s = file->append_zeros(padded(end) - end); !s) return s;
  }
  return file->commit();
}

}  // namespace opledger::gguf
