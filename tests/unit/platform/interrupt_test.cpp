// Signals raised in the test's own process or in a forked one; the exit code is the one DESIGN and docs
// promise.
#include "platform/interrupt.h"

#include <csignal>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace opledger::platform {
namespace {

TEST(InterruptSignal, TheFirstOnlyAsks) {
  const Interrupt interrupt;
  EXPECT_FALSE(interrupt.is_requested());
  ASSERT_EQ(::raise(SIGINT), 0);
  EXPECT_TRUE(interrupt.is_requested());
}

TEST(InterruptSignal, AnotherSessionStartsWithoutTheOldRequest) {
  {
    const Interrupt interrupt;
    ASSERT_EQ(::raise(SIGTERM), 0);
  }
  const Interrupt interrupt;
  EXPECT_FALSE(interrupt.is_requested());
}

TEST(InterruptSignal, TheSecondKillsTheEnginesAndExitsWith130) {
  const pid_t engine = ::fork();
  if (engine == 0) {
    ::setpgid(0, 0);
    while (true) ::pause();
  }
  ::setpgid(engine, engine);
  const pid_t core = ::fork();
  if (core == 0) {
    const Interrupt interrupt;
    protect_group(engine);
    ::raise(SIGINT);
    ::raise(SIGINT);
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(core, &status, 0), core);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  ASSERT_EQ(::waitpid(engine, &status, 0), engine);
  EXPECT_TRUE(WIFSIGNALED(status));
}

}  // namespace
}  // namespace opledger::platform
