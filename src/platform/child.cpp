// fork and exec by hand, because posix_spawn can neither set the parent-death signal nor report which step
// failed. Between fork and exec only async-signal-safe calls are made.
#include "platform/child.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "platform/interrupt.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX names it, no header must

namespace opledger::platform {
namespace {

constexpr unsigned kCloseOnExec = 1U << 2;  // CLOSE_RANGE_CLOEXEC

/// Everything the child needs after fork, allocated before it.
struct Launch {
  std::vector<std::string> texts;
  std::vector<char*> argv;
  std::vector<char*> envp;
  int log_fd = -1;
  int null_fd = -1;
  int socket_fd = -1;
  int error_fd = -1;
  pid_t parent = -1;
};

bool is_overridden(const char* entry, const std::vector<std::string>& overrides) {
  const std::string_view text(entry);
  const std::string_view name = text.substr(0, text.find('='));
  for (const std::string& other : overrides) {
    if (std::string_view(other).substr(0, other.find('=')) == name) return true;
  }
  return false;
}

void fill_arguments(const ChildOptions& options, int socket_fd, Launch& launch) {
  std::vector<std::string> overrides = options.environment;
  overrides.push_back(fmt::format("{}={}", options.socket_variable, socket_fd));
  launch.texts.push_back(options.program);
  for (const std::string& argument : options.arguments) launch.texts.push_back(argument);
  const size_t argument_count = launch.texts.size();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!is_overridden(*entry, overrides)) launch.texts.emplace_back(*entry);
  }
  for (std::string& entry : overrides) launch.texts.push_back(std::move(entry));
  for (size_t i = 0; i < launch.texts.size(); ++i) {
    (i < argument_count ? launch.argv : launch.envp).push_back(launch.texts[i].data());
  }
  launch.argv.push_back(nullptr);
  launch.envp.push_back(nullptr);
}

[[noreturn]] void run_child(const Launch& launch) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the line above: then nobody would ever tell us.
  if (::getppid() != launch.parent) ::_exit(127);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGHUP, SIGQUIT}) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(launch.null_fd, STDIN_FILENO);
  ::dup2(launch.log_fd, STDOUT_FILENO);
  ::dup2(launch.log_fd, STDERR_FILENO);
  // An engine that inherited another engine's socket would keep it open after its owner died.
  ::syscall(SYS_close_range, 3U, ~0U, kCloseOnExec);
  ::fcntl(launch.socket_fd, F_SETFD, 0);
  ::execve(launch.argv[0], launch.argv.data(), launch.envp.data());
  const int reason = errno;
  [[maybe_unused]] const ssize_t written = ::write(launch.error_fd, &reason, sizeof reason);
  ::_exit(127);
}

/// 0 once the child runs the program, else the errno of exec.
int exec_error(int read_fd) {
  int reason = 0;
  ssize_t got = -1;
  do {
    got = ::read(read_fd, &reason, sizeof reason);
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof reason) ? reason : 0;
}

}  // namespace

std::string ProcessEnd::describe() const {
  if (!by_signal) return fmt::format("exited with {}", code);
  const char* name = ::strsignal(code);
  return fmt::format("was killed by signal {} ({})", code, name == nullptr ? "unknown" : name);
}

Result<Child> Child::start(const ChildOptions& options) {
  UniqueFd log(::open(options.log_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644));
  if (!log.is_open()) {
    return Error::environment(
        fmt::format("{}: cannot write the engine's log: {}; set OPLEDGER_CACHE to a writable folder",
                    options.log_path, std::strerror(errno)));
  }
  UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::array<int, 2> sockets{-1, -1};
  std::array<int, 2> errors{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0 ||
      ::pipe2(errors.data(), O_CLOEXEC) != 0) {
    return Error::environment(fmt::format("{}: cannot open a socket for the engine: {}; raise `ulimit -n`",
                                          options.program, std::strerror(errno)));
  }
  UniqueFd ours(sockets[0]);
  UniqueFd theirs(sockets[1]);
  UniqueFd error_read(errors[0]);
  UniqueFd error_write(errors[1]);
  Launch launch;
  launch.log_fd = log.fd();
  launch.null_fd = null.fd();
  launch.socket_fd = theirs.fd();
  launch.error_fd = error_write.fd();
  launch.parent = ::getpid();
  fill_arguments(options, theirs.fd(), launch);

  const pid_t id = ::fork();
  if (id == 0) run_child(launch);
  if (id < 0) {
    return Error::environment(
        fmt::format("{}: cannot start a process: {}; close other programs and try again", options.program,
                    std::strerror(errno)));
  }
  ::setpgid(id, id);  // also here: whoever comes first, a kill of the group must find it
  Child child(id, std::move(ours));
  error_write.reset();
  if (const int reason = exec_error(error_read.fd()); reason != 0) {
    return Error::bad_input(fmt::format("{}: cannot execute the engine: {}; give the path of an executable",
                                        options.program, std::strerror(reason)));
  }
  return child;
}

Child::Child(pid_t id, UniqueFd socket) : id_(id), socket_(std::move(socket)) {
  protect_group(id);
}

Child::Child(Child&& other) noexcept
    : id_(std::exchange(other.id_, -1)),
      paused_(other.paused_),
      socket_(std::move(other.socket_)),
      end_(other.end_) {}

Child& Child::operator=(Child&& other) noexcept {
  if (this != &other) {
    if (id_ > 0) kill_group();
    id_ = std::exchange(other.id_, -1);
    paused_ = other.paused_;
    socket_ = std::move(other.socket_);
    end_ = other.end_;
  }
  return *this;
}

Child::~Child() {
  if (id_ > 0) kill_group();
}

void Child::note_end(int wait_status) {
  ProcessEnd end;
  end.by_signal = WIFSIGNALED(wait_status);
  end.code = end.by_signal ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
  end_ = end;
  // What the engine itself started shares its group and must not stay behind either.
  ::kill(-id_, SIGKILL);
  forget_group(id_);
}

bool Child::wait_stopped() {
  constexpr int kPolls = 50;
  for (int i = 0; i < kPolls; ++i) {
    int status = 0;
    const pid_t got = ::waitpid(id_, &status, WUNTRACED | WNOHANG);
    if (got == id_ && !WIFSTOPPED(status)) note_end(status);
    if (got == id_) return true;
    const timespec pause_time{0, 1'000'000};
    ::nanosleep(&pause_time, nullptr);
  }
  return false;
}

void Child::pause() {
  if (end_ || paused_) return;
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    ::kill(-id_, SIGSTOP);
    if (wait_stopped()) break;
    // A shell inside vfork cannot stop before its child has called exec, and that child is stopped already
    // (6 of 90 starts of `sh -c` on a busy machine): let both go on and ask again.
    if (i + 1 < kTries) ::kill(-id_, SIGCONT);
  }
  paused_ = !end_;
}

void Child::resume() {
  if (end_ || !paused_) return;
  ::kill(-id_, SIGCONT);
  paused_ = false;
}

std::optional<ProcessEnd> Child::poll_end() {
  if (end_) return end_;
  int status = 0;
  if (::waitpid(id_, &status, WNOHANG) == id_) note_end(status);
  return end_;
}

std::optional<ProcessEnd> Child::wait_end(int64_t deadline_ns, const Clock& clock) {
  if (poll_end()) return end_;
  // Readable as soon as the process ends: whoever times a command must not wait for the next look at it.
  const UniqueFd ends(static_cast<int>(::syscall(SYS_pidfd_open, id_, 0)));
  for (int64_t left_ns = deadline_ns - clock.now_ns(); !poll_end() && left_ns > 0;
       left_ns = deadline_ns - clock.now_ns()) {
    constexpr int64_t kLongestNs = 100'000'000;
    // Without a descriptor (kernels before 5.3, or out of them) poll waits for nothing but the time.
    const int64_t wait_ns = ends.is_open() ? std::min(left_ns, kLongestNs) : 2'000'000;
    pollfd ended{ends.fd(), POLLIN, 0};
    ::poll(&ended, 1, static_cast<int>(wait_ns / 1'000'000) + 1);
  }
  return end_;
}

ProcessEnd Child::kill_group() {
  if (end_) return *end_;
  ::kill(-id_, SIGKILL);
  int status = 0;
  pid_t got = -1;
  do {
    got = ::waitpid(id_, &status, 0);
  } while (got < 0 && errno == EINTR);
  note_end(status);
  return *end_;
}

std::string log_tail(const std::string& path, size_t max_chars) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return {};
  const off_t size = ::lseek(file.fd(), 0, SEEK_END);
  const off_t wanted = static_cast<off_t>(max_chars) * 2;
  std::string text(static_cast<size_t>(size < wanted ? size : wanted), '\0');
  const ssize_t got = ::pread(file.fd(), text.data(), text.size(), size - static_cast<off_t>(text.size()));
  if (got <= 0) return {};
  text.resize(static_cast<size_t>(got));
  std::string line;
  bool at_break = true;
  for (const char c : text) {
    if (c == '\n' || c == '\r') {
      at_break = true;
      continue;
    }
    if (at_break && !line.empty()) line += " | ";
    at_break = false;
    line += (c >= 0x20 && c < 0x7f) ? c : '?';
  }
  return line.size() > max_chars ? "..." + line.substr(line.size() - max_chars + 3) : line;
}

}  // namespace opledger::platform
