// Walks the header once, front to back. A length is compared with what the file still holds before it is
// used for anything, so memory stays in proportion to the file and a hostile count costs nothing.
#include "gguf/reader.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <limits>
#include <set>
#include <utility>

#include "gguf/file_cursor.h"
#include "gguf/text.h"
#include "gguf/types.h"

namespace opledger::gguf {
namespace {

using detail::printable;

static_assert(std::endian::native == std::endian::little, "GGUF values are read as they lie in the file");

// From the GGUF specification: names of keys hold at most 65535 bytes, names of tensors fewer than 64 in
// every engine, four dimensions at most.
constexpr uint64_t kMaxKeyBytes = 65535;
constexpr uint64_t kMaxTensorNameBytes = 63;
constexpr uint32_t kMaxDimensions = 4;
// A chat template takes tens of kilobytes. Sixteen megabytes of text in one value is damage.
constexpr uint64_t kMaxTextBytes = uint64_t{1} << 24;
// Fewest bytes that one entry can take: an empty key with a one-byte value; a nameless tensor of no
// dimension.
constexpr uint64_t kMinEntryBytes = 8 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 4 + 4 + 8;

enum class ValueType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kText,
  kArray,
  kU64,
  kI64,
  kF64,
};

struct ValueTypeFacts {
  const char* name;
  uint64_t bytes;  ///< 0: variable
};
constexpr std::array<ValueTypeFacts, 13> kValueTypes{{{"u8", 1},
                                                      {"i8", 1},
                                                      {"u16", 2},
                                                      {"i16", 2},
                                                      {"u32", 4},
                                                      {"i32", 4},
                                                      {"f32", 4},
                                                      {"bool", 1},
                                                      {"text", 0},
                                                      {"array", 0},
                                                      {"u64", 8},
                                                      {"i64", 8},
                                                      {"f64", 8}}};

class HeaderReader {
 public:
  HeaderReader(detail::FileCursor cursor, const std::filesystem::path& path) : cursor_(std::move(cursor)) {
    file_.path = path;
    file_.file_bytes = cursor_.size();
  }

  Result<GgufFile> read() {
    if (Status s = read_preamble(); !s) return s.error();
    for (uint64_t i = 0; i < entry_count_; ++i) {
      if (Status s = read_entry(i); !s) return s.error();
    }
    if (Status s = check_alignment(); !s) return s.error();
    for (uint64_t i = 0; i < tensor_count_; ++i) {
      if (Status s = read_tensor(i); !s) return s.error();
    }
    if (Status s = place_tensors(); !s) return s.error();
    return std::move(file_);
  }

 private:
  [[nodiscard]] Error cut_short(const std::string& what) const {
    return Error::bad_input(fmt::format(
        "{} is cut short or damaged: {} at byte {} runs past its end (byte {}); download it again",
        file_.path.string(), what, cursor_.position(), cursor_.size()));
  }
  [[nodiscard]] Error damaged(const std::string& what) const {
    return Error::bad_input(fmt::format("{} is damaged: {} (near byte {}); download it again",
                                        file_.path.string(), what, cursor_.position()));
  }

  Status read_preamble();
  Result<std::string> read_text(const std::string& what, uint64_t max_bytes);
  Status read_entry(uint64_t index);
  Result<Scalar> read_scalar(ValueType type, const std::string& key);
  Status read_array(const std::string& key);
  Status skip_texts(const std::string& key, uint64_t count);
  Status check_alignment();
  Status read_tensor(uint64_t index);
  Status read_shape(TensorInfo& tensor);
  Status place_tensors();

  template <typename T>
  Result<Scalar> read_number(const std::string& key);

  detail::FileCursor cursor_;
  GgufFile file_;
  uint64_t entry_count_ = 0;
  uint64_t tensor_count_ = 0;
  std::set<std::string, std::less<>> tensor_names_;
};

Status HeaderReader::read_preamble() {
  const std::string path = file_.path.string();
  if (cursor_.size() == 0) return Error::bad_input(fmt::format("{} is empty; download it again", path));
  std::array<char, 4> magic{};
  if (!cursor_.read(magic.data(), magic.size()) || std::string_view(magic.data(), magic.size()) != "GGUF") {
    return Error::bad_input(fmt::format(
        "{} is not a GGUF file: it does not start with \"GGUF\"; convert the model to GGUF first", path));
  }
  if (!cursor_.read_value(file_.version)) return cut_short("the version");
  if (file_.version != 0 && (file_.version & 0xFFFFU) == 0) {
    return Error::bad_input(fmt::format("{} is a big-endian GGUF file; convert it to little-endian", path));
  }
  if (file_.version != 2 && file_.version != 3) {
    return Error::bad_input(fmt::format(
        "{} has GGUF version {}; versions 2 and 3 can be read: convert it again", path, file_.version));
  }
  if (!cursor_.read_value(tensor_count_)) return cut_short("the number of tensors");
  if (!cursor_.read_value(entry_count_)) return cut_short("the number of metadata entries");
  if (tensor_count_ > cursor_.remaining() / kMinTensorBytes) {
    return damaged(fmt::format("it claims {} tensors, more than its {} bytes can describe", tensor_count_,
                               cursor_.size()));
  }
  if (entry_count_ > cursor_.remaining() / kMinEntryBytes) {
    return damaged(fmt::format("it claims {} metadata entries, more than its {} bytes can hold", entry_count_,
                               cursor_.size()));
  }
  return {};
}

Result<std::string> HeaderReader::read_text(const std::string& what, uint64_t max_bytes) {
  uint64_t length = 0;
  if (!cursor_.read_value(length)) return cut_short("the length of " + what);
  if (length > cursor_.remaining()) return cut_short(fmt::format("{} ({} bytes)", what, length));
  if (length > max_bytes)
    return damaged(fmt::format("{} is {} bytes long, at most {} make sense", what, length, max_bytes));
  std::string text(static_cast<size_t>(length), '\0');
  if (!cursor_.read(text.data(), text.size())) return cut_short(what);
  return text;
}

Status HeaderReader::read_entry(uint64_t index) {
  Result<std::string> read_key = read_text(fmt::format("the name of metadata entry {}", index), kMaxKeyBytes);
  if (!read_key) return read_key.error();
  const std::string& key = *read_key;
  if (key.empty() || !detail::is_plain_name(key)) {
    return damaged(fmt::format("the name of metadata entry {} is no text: \"{}\"", index, printable(key)));
  }
  if (file_.metadata.contains(key) || file_.arrays.contains(key)) {
    return damaged(fmt::format("key {} occurs twice", printable(key)));
  }
  uint32_t type = 0;
  if (!cursor_.read_value(type)) return cut_short("the type of key " + printable(key));
  if (type >= kValueTypes.size())
    return damaged(fmt::format("key {} has unknown value type {}", printable(key), type));
  if (static_cast<ValueType>(type) == ValueType::kArray) return read_array(key);
  Result<Scalar> value = read_scalar(static_cast<ValueType>(type), key);
  if (!value) return value.error();
  file_.metadata.emplace(key, std::move(*value));
  return {};
}

template <typename T>
Result<Scalar> HeaderReader::read_number(const std::string& key) {
  T value{};
  if (!cursor_.read_value(value)) return cut_short("the value of key " + printable(key));
  if constexpr (std::is_floating_point_v<T>) return Scalar{double{value}};
  if constexpr (std::is_signed_v<T>) return Scalar{static_cast<int64_t>(value)};
  return Scalar{static_cast<uint64_t>(value)};
}

Result<Scalar> HeaderReader::read_scalar(ValueType type, const std::string& key) {
  switch (type) {
    case ValueType::kU8:
      return read_number<uint8_t>(key);
    case ValueType::kI8:
      return read_number<int8_t>(key);
    case ValueType::kU16:
      return read_number<uint16_t>(key);
    case ValueType::kI16:
      return read_number<int16_t>(key);
    case ValueType::kU32:
      return read_number<uint32_t>(key);
    case ValueType::kI32:
      return read_number<int32_t>(key);
    case ValueType::kU64:
      return read_number<uint64_t>(key);
    case ValueType::kI64:
      return read_number<int64_t>(key);
    case ValueType::kF32:
      return read_number<float>(key);
    case ValueType::kF64:
      return read_number<double>(key);
    case ValueType::kBool: {
      uint8_t value = 0;
      if (!cursor_.read_value(value)) return cut_short("the value of key " + printable(key));
      if (value > 1)
        return damaged(fmt::format("key {} is neither true nor false but {}", printable(key), value));
      return Scalar{value == 1};
    }
    case ValueType::kText:
    case ValueType::kArray:
      break;
  }
  Result<std::string> text = read_text("the value of key " + printable(key), kMaxTextBytes);
  if (!text) return text.error();
  return Scalar{std::move(*text)};
}

Status HeaderReader::read_array(const std::string& key) {
  uint32_t type = 0;
  uint64_t count = 0;
  if (!cursor_.read_value(type) || !cursor_.read_value(count))
    return cut_short("the array of key " + printable(key));
  if (type >= kValueTypes.size() || static_cast<ValueType>(type) == ValueType::kArray) {
    return damaged(fmt::format("key {} is an array of type {}, which no engine reads", printable(key), type));
  }
  const ValueTypeFacts& facts = kValueTypes.at(type);
  const uint64_t element_bytes = facts.bytes != 0 ? facts.bytes : sizeof(uint64_t);
  if (count > cursor_.remaining() / element_bytes) {
    return cut_short(fmt::format("the array of key {} ({} elements)", printable(key), count));
  }
  ArrayValue array{facts.name, count, {}};
  if (facts.bytes == 0) {
    if (Status s = skip_texts(key, count); !s) return s;
  } else if (count > kKeptElements) {
    if (!cursor_.skip(count * facts.bytes)) return cut_short("the array of key " + printable(key));
  } else {
    for (uint64_t i = 0; i < count; ++i) {
      Result<Scalar> value = read_scalar(static_cast<ValueType>(type), key);
      if (!value) return value.error();
      array.values.push_back(std::move(*value));
    }
  }
  file_.arrays.emplace(key, std::move(array));
  return {};
}

Status HeaderReader::skip_texts(const std::string& key, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t length = 0;
    if (!cursor_.read_value(length) || !cursor_.skip(length)) {
      return cut_short(fmt::format("element {} of the array of key {}", i, printable(key)));
    }
  }
  return {};
}

Status HeaderReader::check_alignment() {
  constexpr std::string_view kKey = "general.alignment";
  const auto found = file_.metadata.find(kKey);
  if (found == file_.metadata.end() && !file_.arrays.contains(kKey)) return {};
  const std::optional<int64_t> value = file_.integer(kKey);
  // The specification asks for a multiple of 8; llama.cpp for a power of two.
  if (!value || *value < 8 || *value > std::numeric_limits<uint32_t>::max() ||
      !std::has_single_bit(static_cast<uint64_t>(*value))) {
    return damaged("key general.alignment is not a power of two of at least 8");
  }
  file_.alignment_bytes = static_cast<uint64_t>(*value);
  return {};
}

Status HeaderReader::read_tensor(uint64_t index) {
  Result<std::string> name = read_text(fmt::format("the name of tensor {}", index), kMaxTensorNameBytes);
  if (!name) return name.error();
  TensorInfo tensor;
  tensor.name = std::move(*name);
  if (tensor.name.empty() || !detail::is_plain_name(tensor.name)) {
    return damaged(fmt::format("the name of tensor {} is no text: \"{}\"", index, printable(tensor.name)));
  }
  if (!tensor_names_.insert(tensor.name).second)
    return damaged(fmt::format("tensor {} occurs twice", tensor.name));
  if (Status s = read_shape(tensor); !s) return s;
  if (!cursor_.read_value(tensor.offset)) return cut_short("the offset of tensor " + tensor.name);
  if (tensor.offset % file_.alignment_bytes != 0) {
    return damaged(fmt::format("tensor {} starts at data offset {}, which is no multiple of the alignment {}",
                               tensor.name, tensor.offset, file_.alignment_bytes));
  }
  file_.tensors.push_back(std::move(tensor));
  return {};
}

Status HeaderReader::read_shape(TensorInfo& tensor) {
  uint32_t dimensions = 0;
  if (!cursor_.read_value(dimensions)) return cut_short("the shape of tensor " + tensor.name);
  if (dimensions > kMaxDimensions) {
    return damaged(fmt::format("tensor {} has {} dimensions, at most {} are possible", tensor.name,
                               dimensions, kMaxDimensions));
  }
  for (uint32_t d = 0; d < dimensions; ++d) {
    if (!cursor_.read_value(tensor.ne.at(d))) return cut_short("the shape of tensor " + tensor.name);
  }
  uint32_t id = 0;
  if (!cursor_.read_value(id)) return cut_short("the type of tensor " + tensor.name);
  const TensorType* const type = find_type(id);
  if (type == nullptr) {
    return Error::bad_input(
        fmt::format("{}: tensor {} has type {}, which neither llama.cpp nor ik_llama.cpp is known to have; "
                    "convert the model again",
                    file_.path.string(), tensor.name, id));
  }
  tensor.type = type->name;
  const std::optional<uint64_t> bytes = tensor_bytes(*type, tensor.ne);
  if (!bytes) {
    return damaged(fmt::format("tensor {} has the impossible shape {}x{}x{}x{} for type {}", tensor.name,
                               tensor.ne[0], tensor.ne[1], tensor.ne[2], tensor.ne[3], type->name));
  }
  tensor.bytes = *bytes;
  return {};
}

uint64_t saturated_sum(uint64_t a, uint64_t b, uint64_t c) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  const uint64_t ab = a > kMax - b ? kMax : a + b;
  return ab > kMax - c ? kMax : ab + c;
}

Status HeaderReader::place_tensors() {
  const uint64_t mask = file_.alignment_bytes - 1;
  // The position is at most the file's size, itself a signed 64-bit number: adding an alignment cannot wrap.
  file_.data_offset = (cursor_.position() + mask) & ~mask;
  std::vector<const TensorInfo*> in_order;
  in_order.reserve(file_.tensors.size());
  const uint64_t size = file_.file_bytes;
  const uint64_t room = size > file_.data_offset ? size - file_.data_offset : 0;
  for (TensorInfo& tensor : file_.tensors) {
    if (tensor.offset > room || tensor.bytes > room - tensor.offset) {
      return Error::bad_input(fmt::format(
          "{} is cut short: tensor {} ends at byte {} of {}; download it again", file_.path.string(),
          tensor.name, saturated_sum(file_.data_offset, tensor.offset, tensor.bytes), size));
    }
    tensor.offset += file_.data_offset;
    in_order.push_back(&tensor);
  }
  std::sort(in_order.begin(), in_order.end(),
            [](const TensorInfo* a, const TensorInfo* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < in_order.size(); ++i) {
    if (in_order[i - 1]->offset + in_order[i - 1]->bytes > in_order[i]->offset) {
      return damaged(fmt::format("tensors {} and {} overlap", in_order[i - 1]->name, in_order[i]->name));
    }
  }
  return {};
}

}  // namespace

std::optional<int64_t> GgufFile::integer(std::string_view key) const {
  const auto found = metadata.find(key);
  if (found == metadata.end()) return std::nullopt;
  if (const auto* value = std::get_if<int64_t>(&found->second)) return *value;
  const auto* value = std::get_if<uint64_t>(&found->second);
  if (value == nullptr || *value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    return std::nullopt;
  return static_cast<int64_t>(*value);
}

std::optional<double> GgufFile::number(std::string_view key) const {
  const auto found = metadata.find(key);
  if (found == metadata.end()) return std::nullopt;
  if (const auto* value = std::get_if<double>(&found->second)) return *value;
  if (const auto* value = std::get_if<int64_t>(&found->second)) return static_cast<double>(*value);
  if (const auto* value = std::get_if<uint64_t>(&found->second)) return static_cast<double>(*value);
  return std::nullopt;
}

std::optional<std::string> GgufFile::text(std::string_view key) const {
  const auto found = metadata.find(key);
  if (found == metadata.end()) return std::nullopt;
  if (const auto* value = std::get_if<std::string>(&found->second)) return *value;
  return std::nullopt;
}

Result<GgufFile> read_gguf(const std::filesystem::path& path) {
  Result<detail::FileCursor> cursor = detail::FileCursor::open(path);
  if (!cursor) return cursor.error();
  return HeaderReader(std::move(*cursor), path).read();
}

}  // namespace opledger::gguf
