// Opening refuses everything but a regular file: a FIFO would block for ever, a directory has no bytes.
#include "gguf/file_cursor.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace opledger::gguf::detail {
namespace {

constexpr size_t kReadBufferBytes = size_t{1} << 18;

Error cannot_open(const std::filesystem::path& path, int error) {
  if (error == ENOENT || error == ENOTDIR) {
    return Error::bad_input(fmt::format("{} does not exist; check the model path", path.string()));
  }
  return Error::bad_input(
      fmt::format("{} cannot be opened ({}); check its permissions", path.string(), std::strerror(error)));
}

}  // namespace

Result<FileCursor> FileCursor::open(const std::filesystem::path& path) {
  // Nonblocking, so that a FIFO is found out instead of waited for.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return cannot_open(path, errno);
  FileCursor cursor(descriptor, 0);
  struct stat facts {};
  if (::fstat(descriptor, &facts) != 0) return cannot_open(path, errno);
  if (S_ISDIR(facts.st_mode)) {
    return Error::bad_input(fmt::format("{} is a directory; name the .gguf file in it", path.string()));
  }
  if (!S_ISREG(facts.st_mode)) {
    return Error::bad_input(fmt::format("{} is not a regular file; name a .gguf file", path.string()));
  }
  cursor.size_ = static_cast<uint64_t>(facts.st_size);
  cursor.buffer_.resize(kReadBufferBytes);
  return cursor;
}

FileCursor::FileCursor(FileCursor&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      position_(other.position_),
      buffer_start_(other.buffer_start_),
      buffer_bytes_(other.buffer_bytes_),
      buffer_(std::move(other.buffer_)) {}

FileCursor::~FileCursor() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool FileCursor::fill() {
  const size_t wanted = static_cast<size_t>(std::min<uint64_t>(remaining(), buffer_.size()));
  buffer_start_ = position_;
  buffer_bytes_ = 0;
  while (buffer_bytes_ < wanted) {
    const ssize_t got = ::pread(descriptor_, buffer_.data() + buffer_bytes_, wanted - buffer_bytes_,
                                static_cast<off_t>(buffer_start_ + buffer_bytes_));
    if (got < 0 && errno == EINTR) continue;
    // Zero here means that somebody shortened the file after it was opened: the same as never there.
    if (got <= 0) break;
    buffer_bytes_ += static_cast<size_t>(got);
  }
  return buffer_bytes_ > 0;
}

bool FileCursor::read(void* destination, size_t bytes) {
  if (bytes > remaining()) return false;
  const uint64_t start = position_;
  auto* out = static_cast<std::byte*>(destination);
  while (bytes > 0) {
    const bool is_buffered = position_ >= buffer_start_ && position_ < buffer_start_ + buffer_bytes_;
    if (!is_buffered && !fill()) {
      position_ = start;
      return false;
    }
    const auto offset = static_cast<size_t>(position_ - buffer_start_);
    const size_t take = std::min(bytes, buffer_bytes_ - offset);
    std::memcpy(out, buffer_.data() + offset, take);
    out += take;
    position_ += take;
    bytes -= take;
  }
  return true;
}

bool FileCursor::skip(uint64_t bytes) {
  if (bytes > remaining()) return false;
  position_ += bytes;
  return true;
}

}  // namespace opledger::gguf::detail
