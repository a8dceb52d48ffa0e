// Lines over a socket pair; the other end is driven by the test itself, and time by a clock that it sets.
#include "platform/line_channel.h"

#include <array>
#include <gtest/gtest.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace opledger::platform {
namespace {

class SetClock final : public Clock {
 public:
  [[nodiscard]] int64_t now_ns() const override { return now_ns_ += step_ns_; }
  mutable int64_t now_ns_ = 0;
  int64_t step_ns_ = 0;
};

class LineChannelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    peer_ = UniqueFd(ends[0]);
    ours_ = UniqueFd(ends[1]);
  }
  LineChannel channel(size_t limit = 1 << 20, int interrupt_fd = -1) {
    return {std::move(ours_), limit, clock_, interrupt_fd};
  }
  void say(const std::string& text) {
    ASSERT_EQ(::write(peer_.fd(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  SetClock clock_;
  UniqueFd peer_;
  UniqueFd ours_;
};

TEST_F(LineChannelTest, SplitsWhatArrivesTogetherAndJoinsWhatArrivesInPieces) {
  LineChannel lines = channel();
  say("one\ntwo\nthr");
  EXPECT_EQ(lines.read_line(1'000'000'000).line, "one");
  EXPECT_EQ(lines.read_line(1'000'000'000).line, "two");
  say("ee\n");
  EXPECT_EQ(lines.read_line(1'000'000'000).line, "three");
}

TEST_F(LineChannelTest, ReadsALineLongerThanTheSocketsBuffer) {
  LineChannel lines = channel();
  say(std::string(100'000, 'x') + "\n");
  EXPECT_EQ(lines.read_line(1'000'000'000).line.size(), 100'000U);
}

TEST_F(LineChannelTest, GivesUpOnALineBeyondTheLimit) {
  LineChannel lines = channel(1000);
  say(std::string(70'000, 'x'));
  EXPECT_EQ(lines.read_line(1'000'000'000).state, ChannelState::kTooLong);
}

TEST_F(LineChannelTest, GivesUpAtTheDeadline) {
  LineChannel lines = channel();
  clock_.now_ns_ = 5000;
  EXPECT_EQ(lines.read_line(5000).state, ChannelState::kTimedOut);
}

TEST_F(LineChannelTest, ALineWithoutAnEndStopsAtTheDeadlineNoMatterHowMuchArrives) {
  LineChannel lines = channel();
  clock_.step_ns_ = 400;
  say(std::string(150'000, 'x'));  // three pieces, two looks at the clock each
  EXPECT_EQ(lines.read_line(1500).state, ChannelState::kTimedOut);
}

TEST_F(LineChannelTest, SaysThatThePeerClosedEvenInTheMiddleOfALine) {
  LineChannel lines = channel();
  say("half");
  peer_.reset();
  EXPECT_EQ(lines.read_line(1'000'000'000).state, ChannelState::kClosed);
}

TEST_F(LineChannelTest, WritingToAClosedPeerIsAStateAndNoSignal) {
  LineChannel lines = channel();
  peer_.reset();
  EXPECT_EQ(lines.write_line("hello", 1'000'000'000), ChannelState::kClosed);
}

TEST_F(LineChannelTest, GivesUpOnAPeerThatDoesNotRead) {
  LineChannel lines = channel();
  clock_.step_ns_ = 1'000'000;
  EXPECT_EQ(lines.write_line(std::string(64 << 20, 'x'), 100'000'000), ChannelState::kTimedOut);
}

TEST_F(LineChannelTest, AnInterruptEndsTheWait) {
  std::array<int, 2> wake{};
  ASSERT_EQ(::pipe(wake.data()), 0);
  const UniqueFd read_end(wake[0]);
  const UniqueFd write_end(wake[1]);
  LineChannel lines = channel(1 << 20, read_end.fd());
  ASSERT_EQ(::write(write_end.fd(), "x", 1), 1);
  EXPECT_EQ(lines.read_line(1'000'000'000).state, ChannelState::kInterrupted);
}

}  // namespace
}  // namespace opledger::platform
