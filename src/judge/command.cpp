#include "judge/command.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <utility>

#include "platform/child.h"

namespace opledger::judge {

namespace {

constexpr size_t kTailChars = 300;
// How often a running command is asked whether it has ended: not so often that the asking takes its time.
constexpr int64_t kLookNs = 100'000'000;

}  // namespace

Result<CommandRunner> CommandRunner::make(const std::string& figure, std::string log_path, int64_t limit_ns) {
  if (figure.empty()) return CommandRunner(std::nullopt, std::move(log_path), limit_ns);
  try {
    std::regex expression(figure, std::regex::ECMAScript);
    if (expression.mark_count() == 0) {
      return Error::bad_input(
          fmt::format("--figure {}: put the number in parentheses, as in 'took ([0-9.]+) ms'", figure));
    }
    return CommandRunner(std::move(expression), std::move(log_path), limit_ns);
  } catch (const std::regex_error& error) {
    return Error::bad_input(fmt::format("--figure {}: is no regular expression: {}", figure, error.what()));
  }
}

Result<CommandRun> CommandRunner::run(const std::string& command, const platform::Clock& clock,
                                      const platform::Interrupt& interrupt) const {
  platform::ChildOptions options;
  options.program = "/bin/sh";
  options.arguments = {"-c", command};
  options.log_path = log_path_;
  const int64_t started_ns = clock.now_ns();
  Result<platform::Child> child = platform::Child::start(options);
  if (!child) return child.error();
  std::optional<platform::ProcessEnd> end;
  while (!end) {
    const int64_t now_ns = clock.now_ns();
    if (interrupt.is_requested()) return Error{Error::Kind::kInterrupted, "interrupted"};
    if (now_ns - started_ns > limit_ns_)
      return Error::failure(fmt::format("`{}` did not end within {:.0f} s (see --run-timeout)", command,
                                        static_cast<double>(limit_ns_) * 1e-9));
    end = child->wait_end(now_ns + kLookNs, clock);
  }
  CommandRun run;
  run.elapsed_s = static_cast<double>(clock.now_ns() - started_ns) * 1e-9;
  if (end->by_signal || end->code != 0) {
    return Error::failure(
        fmt::format("`{}` {}: {}", command, end->describe(), platform::log_tail(log_path_, kTailChars)));
  }
  run.figure = run.elapsed_s;
  if (!figure_) return run;
  const std::optional<double> printed = printed_figure();
  if (!printed || !(*printed > 0)) {
    return Error::failure(fmt::format("`{}` printed no figure above 0 that --figure finds: {}", command,
                                      platform::log_tail(log_path_, kTailChars)));
  }
  run.figure = *printed;
  return run;
}

std::optional<double> CommandRunner::printed_figure() const {
  std::ifstream file(log_path_, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::optional<double> figure;
  for (std::sregex_iterator match(text.begin(), text.end(), *figure_), none; match != none; ++match) {
    const std::string word = (*match)[1].str();
    double number = 0;
    const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error == std::errc{} && rest == word.data() + word.size()) figure = number;
  }
  return figure;
}

}  // namespace opledger::judge
