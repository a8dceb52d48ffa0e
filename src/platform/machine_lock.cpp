// flock on a file that every user may open.
#include "platform/machine_lock.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

namespace opledger::platform {
namespace {

/// Opened without O_CREAT first: in a sticky folder the kernel refuses O_CREAT on another user's file.
UniqueFd open_lock_file(const std::string& path) {
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
  UniqueFd file(::open(path.c_str(), kFlags));
  if (!file.is_open() && errno == ENOENT) {
    file = UniqueFd(::open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0666));
    if (file.is_open()) {
      ::fchmod(file.fd(), 0666);  // the umask must not lock other users out
    } else if (errno == EEXIST) {
      file = UniqueFd(::open(path.c_str(), kFlags));
    }
  }
  return file;
}

std::string holder_of(int fd) {
  std::array<char, 256> text{};
  const ssize_t got = ::pread(fd, text.data(), text.size(), 0);
  std::string holder(text.data(), got > 0 ? static_cast<size_t>(got) : 0);
  holder = holder.substr(0, holder.find('\n'));
  return holder.empty() ? "an unnamed process" : holder;
}

}  // namespace

std::string MachineLock::default_path() {
  const char* given = std::getenv("OPLEDGER_LOCK");
  return given != nullptr && *given != '\0' ? given : "/tmp/opledger-measure.lock";
}

Result<MachineLock> MachineLock::acquire(const std::string& path, const std::string& command) {
  UniqueFd file = open_lock_file(path);
  if (!file.is_open()) {
    return Error::environment(
        fmt::format("{}: cannot open the measurement lock: {}; set OPLEDGER_LOCK to a file "
                    "that you can write",
                    path, std::strerror(errno)));
  }
  if (::flock(file.fd(), LOCK_EX | LOCK_NB) != 0) {
    return Error::environment(
        fmt::format("{}: another measurement runs on this machine ({}); wait for it or stop it", path,
                    holder_of(file.fd())));
  }
  const std::string holder = fmt::format("pid {}, {}\n", ::getpid(), command.substr(0, 200));
  if (::ftruncate(file.fd(), 0) != 0 ||
      ::pwrite(file.fd(), holder.data(), holder.size(), 0) != static_cast<ssize_t>(holder.size())) {
    return Error::environment(
        fmt::format("{}: cannot write the measurement lock: {}", path, std::strerror(errno)));
  }
  return MachineLock(std::move(file));
}

}  // namespace opledger::platform
