// Carriage returns and an erase-to-end on terminals, line by line otherwise.
#include "session/progress.h"

#include <cmath>
#include <cstdio>
#include <fmt/format.h>

namespace opledger::session {

void Progress::say(const std::string& line) {
  clear();
  fmt::print(stderr, "{}\n", line);
  std::fflush(stderr);
}

void Progress::show(const std::string& what) {
  if (!is_terminal_) {
    if (what != shown_) fmt::print(stderr, "{}\n", what);
    shown_ = what;
    return;
  }
  shown_ = what;
  std::string line = what;
  if (end_ns_) {
    const double left_s = static_cast<double>(*end_ns_ - clock_->now_ns()) * 1e-9;
    line += left_s > 1 ? fmt::format(", about {} left", duration_text(left_s)) : ", about done";
  }
  fmt::print(stderr, "\r{}\x1b[K", line.substr(0, 100));
  std::fflush(stderr);
}

void Progress::clear() {
  if (is_terminal_ && !shown_.empty()) {
    fmt::print(stderr, "\r\x1b[K");
    std::fflush(stderr);
    shown_.clear();
  }
}

std::string duration_text(double seconds) {
  if (seconds < 10) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 120) return fmt::format("{} s", whole);
  return whole % 60 == 0 ? fmt::format("{} min", whole / 60)
                         : fmt::format("{} min {} s", whole / 60, whole % 60);
}

}  // namespace opledger::session
