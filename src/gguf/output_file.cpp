// A half-written model looks like a model. So nothing stands under the final name until the last byte is out,
// and nothing stands under the other name when writing fails.
#include "gguf/output_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <utility>

namespace opledger::gguf::detail {
namespace {

constexpr size_t kWriteBufferBytes = size_t{1} << 20;

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

Error no_room(const std::filesystem::path& path, uint64_t bytes) {
  const std::filesystem::path folder = folder_of(path);
  struct statvfs facts {};
  std::string free_text;
  if (::statvfs(folder.c_str(), &facts) == 0) {
    free_text = fmt::format(", {:.0f} MB are free",
                            static_cast<double>(facts.f_bavail) * static_cast<double>(facts.f_frsize) / 1e6);
  }
  return Error::environment(fmt::format("{} needs {:.0f} MB{} in {}; free some or choose another folder",
                                        path.string(), static_cast<double>(bytes) / 1e6, free_text,
                                        folder.string()));
}

/// The file behind a link, so that writing replaces what the link names and not the link.
std::filesystem::path resolved(const std::filesystem::path& path) {
  std::error_code failed;
  std::filesystem::path real = std::filesystem::canonical(path, failed);
  return failed ? path : real;
}

Status check_destination(const std::filesystem::path& path) {
  if (!path.has_filename()) {
    return Error::bad_input(fmt::format("\"{}\" names no file; give the name of a file", path.string()));
  }
  std::error_code failed;
  const std::filesystem::file_status status = std::filesystem::status(path, failed);
  if (std::filesystem::is_directory(status)) {
    return Error::bad_input(fmt::format("{} is a directory; give the name of a file in it", path.string()));
  }
  // Renaming over a device would replace it.
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return Error::bad_input(fmt::format("{} is not a regular file; give another name", path.string()));
  }
  const std::filesystem::path folder = folder_of(path);
  if (!std::filesystem::is_directory(folder, failed)) {
    return Error::bad_input(
        fmt::format("{}: there is no folder {}; create it first", path.string(), folder.string()));
  }
  return {};
}

}  // namespace

OutputFile::OutputFile(int descriptor, std::filesystem::path partial, std::filesystem::path path)
    : descriptor_(descriptor), partial_(std::move(partial)), path_(std::move(path)) {
  buffer_.reserve(kWriteBufferBytes);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      partial_(std::move(other.partial_)),
      path_(std::move(other.path_)),
      buffer_(std::move(other.buffer_)),
      size_(other.size_) {}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(partial_.c_str());
}

Result<OutputFile> OutputFile::create(const std::filesystem::path& path, uint64_t bytes) {
  if (Status s = check_destination(path); !s) return s.error();
  const std::filesystem::path real = resolved(path);
  std::filesystem::path partial = real;
  partial += fmt::format(".{}.partial", ::getpid());
  const int descriptor = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    const int error = errno;
    if (error == ENOSPC || error == EDQUOT) return no_room(path, bytes);
    return Error::bad_input(
        fmt::format("{} cannot be written ({}); choose another folder", path.string(), std::strerror(error)));
  }
  OutputFile file(descriptor, std::move(partial), real);
  // Not every file system can reserve; there a full disk is found while writing.
  if (::fallocate(descriptor, 0, 0, static_cast<off_t>(bytes)) != 0 &&
      (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) {
    return no_room(path, bytes);
  }
  return file;
}

Error OutputFile::cannot_write(int error) const {
  if (error == ENOSPC || error == EDQUOT) return no_room(path_, size_);
  return Error::environment(fmt::format("{} could not be written to its end ({}); choose another folder",
                                        path_.string(), std::strerror(error)));
}

Status OutputFile::flush() {
  size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t wrote = ::write(descriptor_, buffer_.data() + done, buffer_.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return cannot_write(errno);
    done += static_cast<size_t>(wrote);
  }
  buffer_.clear();
  return {};
}

Status OutputFile::append(std::span<const std::byte> bytes) {
  size_ += bytes.size();
  while (!bytes.empty()) {
    const size_t take = std::min(bytes.size(), kWriteBufferBytes - buffer_.size());
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.begin() + static_cast<long>(take));
    bytes = bytes.subspan(take);
    if (buffer_.size() == kWriteBufferBytes) {
      if (Status s = flush(); !s) return s;
    }
  }
  return {};
}

Status OutputFile::append_zeros(uint64_t bytes) {
  const std::vector<std::byte> zeros(static_cast<size_t>(bytes));
  return append(zeros);
}

Status OutputFile::commit() {
  if (Status s = flush(); !s) return s;
  const int descriptor = std::exchange(descriptor_, -1);
  // Some file systems report a full disk only here.
  const bool is_closed = ::close(descriptor) == 0;
  if (is_closed && ::rename(partial_.c_str(), path_.c_str()) == 0) return {};
  const int error = errno;
  ::unlink(partial_.c_str());
  return cannot_write(error);
}

}  // namespace opledger::gguf::detail
