// One line is one deflate stream of its own: about 20 bytes dearer per line than a shared one, and the price
// of a file that a kill at any moment leaves readable.
#include "platform/record_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <memory>
#include <sstream>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <utility>
#include <zlib.h>

#include "core/base/check.h"
#include "core/record/read.h"

namespace opledger::platform {

namespace {

// 16 on top of the window bits asks zlib for gzip framing.
constexpr int kGzipWindowBits = 15 + 16;
// A few kilobytes of damaged or hostile input may claim to unpack to anything.
constexpr size_t kMostTextBytes = size_t{4} << 30;

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

std::string gzip_member(std::string_view text) {
  z_stream stream{};
  OPLEDGER_CHECK(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindowBits, 8,
                              Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int outcome = deflate(&stream, Z_FINISH);
  OPLEDGER_CHECK(outcome == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// The errno of the first write that failed, 0 when all was written.
int write_fully(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

struct Inflater {
  z_stream stream{};
  Inflater() { OPLEDGER_CHECK(inflateInit2(&stream, kGzipWindowBits) == Z_OK); }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
};

// Unpacks every member of `packed`. An input that ends inside a member gives what could be read of it.
Result<RecordText> unpack(const std::string& packed, const std::string& path) {
  RecordText result;
  Inflater inflater;
  z_stream& stream = inflater.stream;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  size_t left = packed.size();
  std::string chunk(size_t{1} << 16, '\0');
  bool inside_member = false;
  while (left > 0 || inside_member) {
    const size_t given = std::min(left, size_t{1} << 30);
    stream.avail_in = static_cast<uInt>(given);
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    const int outcome = inflate(&stream, Z_NO_FLUSH);
    left -= given - stream.avail_in;
    result.text.append(chunk.data(), chunk.size() - stream.avail_out);
    if (result.text.size() > kMostTextBytes)
      return Error::bad_input(fmt::format("{}: unpacks to more than 4 GiB: not a record", path));
    inside_member = outcome != Z_STREAM_END;
    if (outcome == Z_STREAM_END) {
      inflateReset(&stream);
    } else if (outcome == Z_BUF_ERROR || (outcome == Z_OK && left == 0 && stream.avail_out > 0)) {
      result.was_cut = true;
      return result;
    } else if (outcome != Z_OK) {
      return Error::bad_input(fmt::format("{}: damaged at byte {}: not a gzip file that opledger wrote", path,
                                          packed.size() - left));
    }
  }
  return result;
}

}  // namespace

Result<RecordWriter> RecordWriter::open(const std::string& path) {
  struct stat facts {};
  const bool is_there = ::stat(path.c_str(), &facts) == 0;
  const bool is_kept = is_there && S_ISREG(facts.st_mode) && facts.st_size > 0;
  // What lies there may be the record of hours, and this session may fail before it measures anything.
  std::error_code problem;
  const std::string target = is_kept ? std::filesystem::canonical(path, problem).string() : path;
  const std::string part = is_kept ? target + ".part" : "";
  const bool is_refused = problem || (is_kept && ::access(target.c_str(), W_OK) != 0);
  const int fd = is_refused
                     ? -1
                     : ::open((is_kept ? part : target).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                              is_kept ? facts.st_mode : 0644);
  if (fd < 0) {
    const int reason = problem ? problem.value() : errno;
    return Error::bad_input(fmt::format("--record {}: {}cannot be written ({}): name another file", path,
                                        is_refused || !is_kept ? "" : part + " ", std::strerror(reason)));
  }
  RecordWriter writer(target, part, fd);
  writer.is_gzip_ = ends_with(path, ".gz");
  return writer;
}

Status RecordWriter::settle() {
  if (part_path_.empty()) return {};
  if (::rename(part_path_.c_str(), path_.c_str()) != 0)
    return Error::environment(fmt::format("--record {}: {} cannot be renamed to it ({}): the record is there",
                                          path_, part_path_, std::strerror(errno)));
  part_path_.clear();
  return {};
}

RecordWriter::RecordWriter(RecordWriter&& other) noexcept
    : path_(std::move(other.path_)),
      part_path_(std::move(other.part_path_)),
      fd_(std::exchange(other.fd_, -1)),
      is_gzip_(other.is_gzip_),
      whole_bytes_(other.whole_bytes_) {}

RecordWriter& RecordWriter::operator=(RecordWriter&& other) noexcept {
  if (this == &other) return *this;
  if (fd_ >= 0) ::close(fd_);
  path_ = std::move(other.path_);
  part_path_ = std::move(other.part_path_);
  fd_ = std::exchange(other.fd_, -1);
  is_gzip_ = other.is_gzip_;
  whole_bytes_ = other.whole_bytes_;
  return *this;
}

RecordWriter::~RecordWriter() {
  if (fd_ < 0) return;
  ::close(fd_);
  const bool is_worthless = !part_path_.empty() && whole_bytes_ == 0;
  if (is_worthless) ::unlink(part_path_.c_str());
}

Status RecordWriter::append(std::string_view line) {
  std::string bytes(line);
  bytes += '\n';
  if (is_gzip_) bytes = gzip_member(bytes);
  if (const int problem = write_fully(fd_, bytes); problem != 0) {
    // A device such as /dev/full cannot be cut back; then nothing of the line was kept either.
    if (::ftruncate(fd_, whole_bytes_) == 0) ::lseek(fd_, whole_bytes_, SEEK_SET);
    return Error::environment(
        fmt::format("{}: cannot be written further ({}): what was measured so far is kept; "
                    "make room and run again",
                    path_, std::strerror(problem)));
  }
  whole_bytes_ += static_cast<int64_t>(bytes.size());
  return {};
}

Status check_room(const std::string& path, int64_t bytes) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  struct statvfs facts {};
  if (::statvfs(folder.c_str(), &facts) != 0)
    return Error::bad_input(fmt::format("--record {}: folder {} cannot be read ({})", path, folder.string(),
                                        std::strerror(errno)));
  const auto free_bytes = static_cast<int64_t>(facts.f_bavail) * static_cast<int64_t>(facts.f_frsize);
  if (free_bytes >= bytes) return {};
  return Error::environment(
      fmt::format("--record {}: needs about {} MB, {} MB are free there: make room or name "
                  "another folder",
                  path, bytes / 1000000 + 1, free_bytes / 1000000));
}

Result<RecordText> read_record_text(const std::string& path) {
  std::error_code problem;
  if (std::filesystem::is_directory(path, problem))
    return Error::bad_input(fmt::format("{}: is a folder, not a record", path));
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error::bad_input(fmt::format("{}: cannot be read ({})", path, std::strerror(errno)));
  std::ostringstream content;
  content << file.rdbuf();
  std::string bytes = std::move(content).str();
  const bool is_gzip = bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
  if (is_gzip) return unpack(bytes, path);
  return RecordText{std::move(bytes), false};
}

Result<core::Record> load_record(const std::string& path) {
  Result<RecordText> text = read_record_text(path);
  if (!text) return text.error();
  Result<core::Record> record = core::parse_record(text->text, path);
  // A cut inside a member may still end at a whole line: the parser alone would not notice.
  if (record && text->was_cut && record->doubts.empty())
    record->doubts.emplace_back("the file ends inside its last line, which was ignored");
  return record;
}

}  // namespace opledger::platform
