// Real processes, small programs of /bin. Nothing here depends on how long anything takes: every wait is for
// an event, with a limit that only a failure reaches.
#include "platform/child.h"

#include <array>
#include <csignal>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace opledger::platform {
namespace {

constexpr int64_t kLimitNs = 20'000'000'000;

class ChildTest : public ::testing::Test {
 protected:
  ChildOptions shell(const std::string& script) {
    ChildOptions options;
    options.program = "/bin/sh";
    options.arguments = {"-c", script};
    options.log_path = log_path_;
    return options;
  }
  [[nodiscard]] int64_t limit() const { return clock_.now_ns() + kLimitNs; }

  SteadyClock clock_;
  std::string log_path_ = ::testing::TempDir() + "child_" +
                          ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".log";
};

TEST_F(ChildTest, TalksOverTheSocketThatItsEnvironmentNames) {
  Result<Child> child =
      Child::start(shell("eval 'read word <&'$OPLEDGER_FD'; echo got $word >&'$OPLEDGER_FD"));
  ASSERT_TRUE(child) << child.error().message;
  const UniqueFd socket = child->take_socket();
  ASSERT_EQ(::write(socket.fd(), "hello\n", 6), 6);
  std::array<char, 32> answer{};
  ASSERT_GT(::read(socket.fd(), answer.data(), answer.size()), 0);
  EXPECT_STREQ(answer.data(), "got hello\n");
}

TEST_F(ChildTest, SaysHowItEnded) {
  Result<Child> child = Child::start(shell("exit 3"));
  ASSERT_TRUE(child);
  const auto end = child->wait_end(limit(), clock_);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->describe(), "exited with 3");
}

TEST_F(ChildTest, SaysWhichSignalEndedIt) {
  Result<Child> child = Child::start(shell("kill -SEGV $$"));
  ASSERT_TRUE(child);
  const auto end = child->wait_end(limit(), clock_);
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->by_signal);
  EXPECT_EQ(end->code, SIGSEGV);
}

TEST_F(ChildTest, KeepsItsOutputInTheLog) {
  Result<Child> child = Child::start(shell("echo first; echo second >&2"));
  ASSERT_TRUE(child);
  ASSERT_TRUE(child->wait_end(limit(), clock_));
  EXPECT_EQ(log_tail(log_path_, 100), "first | second");
}

TEST_F(ChildTest, EnvironmentGivenReplacesOurs) {
  ASSERT_EQ(::setenv("OPLEDGER_TEST_WORD", "ours", 1), 0);
  ChildOptions options = shell("echo $OPLEDGER_TEST_WORD");
  options.environment = {"OPLEDGER_TEST_WORD=theirs"};
  Result<Child> child = Child::start(options);
  ASSERT_TRUE(child);
  ASSERT_TRUE(child->wait_end(limit(), clock_));
  EXPECT_EQ(log_tail(log_path_, 100), "theirs");
}

TEST_F(ChildTest, AProgramThatCannotRunIsOneLineWithItsName) {
  ChildOptions options = shell("");
  options.program = "/nowhere/engine";
  const Result<Child> child = Child::start(options);
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().kind, Error::Kind::kBadInput);
  EXPECT_NE(child.error().message.find("/nowhere/engine"), std::string::npos);
}

TEST_F(ChildTest, KillingItAlsoKillsWhatItStarted) {
  // The shell's own child shares its group; the pipe closes only when both are gone.
  std::array<int, 2> pipe_ends{};
  ASSERT_EQ(::pipe(pipe_ends.data()), 0);
  UniqueFd read_end(pipe_ends[0]);
  UniqueFd write_end(pipe_ends[1]);
  ChildOptions options = shell("sleep 1000 & echo $! ; wait");
  Result<Child> child = Child::start(options);
  ASSERT_TRUE(child);
  pid_t grandchild = 0;
  while (grandchild == 0) std::ifstream(log_path_) >> grandchild;
  ASSERT_EQ(::kill(grandchild, 0), 0);
  child->kill_group();
  // Its new parent reaps it; until then it is a zombie, which kill(0) still finds.
  const int64_t end = limit();
  std::string state = "R";
  while (state != "Z" && state != "gone" && clock_.now_ns() < end) {
    std::ifstream stat("/proc/" + std::to_string(grandchild) + "/stat");
    std::string skipped;
    if (!(stat >> skipped >> skipped >> state)) state = "gone";
  }
  EXPECT_TRUE(state == "Z" || state == "gone") << state;
}

TEST_F(ChildTest, APausedChildIsStoppedUntilItIsWoken) {
  Result<Child> child = Child::start(shell("eval \"read word <&$OPLEDGER_FD\""));
  ASSERT_TRUE(child);
  child->pause();
  std::ifstream stat("/proc/" + std::to_string(child->id()) + "/stat");
  std::string number;
  std::string name;
  std::string state;
  stat >> number >> name >> state;
  EXPECT_EQ(state, "T");
  child->resume();
  EXPECT_FALSE(child->is_paused());
  child->take_socket().reset();
  EXPECT_TRUE(child->wait_end(limit(), clock_));
}

TEST_F(ChildTest, APausedChildCanBeKilled) {
  Result<Child> child = Child::start(shell("sleep 1000"));
  ASSERT_TRUE(child);
  child->pause();
  EXPECT_EQ(child->kill_group().code, SIGKILL);
}

TEST_F(ChildTest, DiesWhenItsParentIsKilledEvenWhilePaused) {
  std::array<int, 2> report{};
  ASSERT_EQ(::pipe(report.data()), 0);
  const pid_t parent = ::fork();
  if (parent != 0) ::close(report[1]);  // so that a parent that fails is an end of file here
  if (parent == 0) {
    Result<Child> child = Child::start(shell("sleep 1000"));
    if (!child) ::_exit(1);
    child->pause();
    const pid_t id = child->id();
    if (::write(report[1], &id, sizeof id) != sizeof id) ::_exit(1);
    while (true) ::pause();
  }
  pid_t id = 0;
  ASSERT_EQ(::read(report[0], &id, sizeof id), static_cast<ssize_t>(sizeof id));
  // As the new parent of orphans we can wait for the child itself.
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  ASSERT_EQ(::kill(parent, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(parent, &status, 0), parent);
  ASSERT_EQ(::waitpid(id, &status, 0), id);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

TEST_F(ChildTest, AChildThatKeepsStartingProgramsCanBePaused) {
  // dash starts programs by vfork: a stop that falls into one is taken only after its exec.
  Result<Child> child = Child::start(shell("while :; do /bin/true; done"));
  ASSERT_TRUE(child) << child.error().message;
  for (int i = 0; i < 30; ++i) {
    child->pause();
    ASSERT_TRUE(child->is_paused());
    child->resume();
  }
}

TEST(LogTail, KeepsTheEndOfALongLogOnOneLine) {
  const std::string path = ::testing::TempDir() + "long_" + std::to_string(::getpid()) + ".log";
  std::ofstream(path) << std::string(5000, 'a') << "\nthe\x01 end\n";
  const std::string tail = log_tail(path, 20);
  EXPECT_EQ(tail.size(), 20U);
  EXPECT_EQ(tail.substr(9), " | the? end");
}

TEST(LogTail, IsEmptyWithoutALog) {
  EXPECT_EQ(log_tail("/nowhere.log", 100), "");
}

}  // namespace
}  // namespace opledger::platform
