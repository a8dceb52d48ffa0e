// Which line of a build log is shown. The logs are as GCC 12, CMake 3.25, Ninja 1.11 and GNU ld print them.
#include "session/build_command.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <unistd.h>

namespace opledger::session {
namespace {

namespace fs = std::filesystem;

TEST(FirstBuildError, IsTheCompilersFirstErrorNotItsWarningsBefore) {
  const std::string log =
      "[1/3] Building CXX object a.o\n"
      "a.cpp:1:5: warning: unused variable 'x' [-Wunused-variable]\n"
      "FAILED: b.o \n"
      "/usr/bin/c++ -O3 -c b.cpp\n"
      "b.cpp:7:3: error: 'foo' was not declared in this scope\n"
      "b.cpp:9:3: error: expected ';' before '}' token\n"
      "ninja: build stopped: subcommand failed.\n";
  EXPECT_EQ(first_build_error(log), "b.cpp:7:3: error: 'foo' was not declared in this scope");
}

TEST(FirstBuildError, IsAFatalErrorForAMissingHeader) {
  EXPECT_EQ(first_build_error("x.c:1:10: fatal error: nothing.h: No such file or directory\n"),
            "x.c:1:10: fatal error: nothing.h: No such file or directory");
}

TEST(FirstBuildError, JoinsCMakesPlaceAndMessage) {
  const std::string log =
      "-- The C compiler\nCMake Error at CMakeLists.txt:3 (message):\n  no such backend\n\n\n-- Configuring "
      "incomplete\n";
  EXPECT_EQ(first_build_error(log), "CMake Error at CMakeLists.txt:3 (message): no such backend");
}

TEST(FirstBuildError, IsTheLinkersUndefinedReference) {
  EXPECT_EQ(first_build_error(
                "/usr/bin/ld: a.o: in function `main':\na.cpp:(.text+0x5): undefined reference to `f()'\n"),
            "a.cpp:(.text+0x5): undefined reference to `f()'");
}

TEST(FirstBuildError, IsNinjasOwnComplaint) {
  EXPECT_EQ(first_build_error("ninja: error: unknown target 'llama'\n"),
            "ninja: error: unknown target 'llama'");
}

TEST(FirstBuildError, IsAbsentFromACleanLog) {
  EXPECT_EQ(first_build_error("[1/1] Linking\n"), std::nullopt);
}

class RunBuildCommand : public ::testing::Test {
 protected:
  void SetUp() override { fs::remove(log_); }
  void TearDown() override { fs::remove(log_); }
  fs::path log_ =
      fs::path(::testing::TempDir()) / ("opledger_build_command_" + std::to_string(::getpid()) + ".log");
};

TEST_F(RunBuildCommand, KeepsBothOutputStreamsAndTheExitStatus) {
  const Result<int> status =
      run_build_command({{"sh", "-c", "echo out; echo err >&2; exit 3"}, log_, {}, {}});
  ASSERT_TRUE(status.is_ok());
  EXPECT_EQ(*status, 3);
  EXPECT_EQ(read_log(log_), "out\nerr\n");
}

TEST_F(RunBuildCommand, ReplacesAVariableOfTheInheritedEnvironment) {
  ASSERT_TRUE(run_build_command({{"sh", "-c", "echo $HOME"}, log_, {"HOME=/elsewhere"}, {}}).is_ok());
  EXPECT_EQ(read_log(log_), "/elsewhere\n");
}

TEST_F(RunBuildCommand, SaysThatASignalEndedTheCommand) {
  const Result<int> status = run_build_command({{"sh", "-c", "kill -9 $$"}, log_, {}, {}});
  ASSERT_TRUE(status.is_ok());
  EXPECT_EQ(*status, 128 + 9);  // the shell's convention
}

TEST_F(RunBuildCommand, NamesAProgramThatIsNotInstalled) {
  const Result<int> status = run_build_command({{"no-such-program-here"}, log_, {}, {}});
  ASSERT_FALSE(status.is_ok());
  EXPECT_EQ(status.error().kind, Error::Kind::kEnvironment);
  EXPECT_NE(status.error().message.find("no-such-program-here"), std::string::npos);
}

}  // namespace
}  // namespace opledger::session
