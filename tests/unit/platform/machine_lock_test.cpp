// The lock on a file of the test's own.
#include "platform/machine_lock.h"

#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>

namespace opledger::platform {
namespace {

TEST(MachineLock, NamesItsHolderToTheSecondAndIsFreeAfterwards) {
  const std::string path = ::testing::TempDir() + "measure.lock";
  ::unlink(path.c_str());
  {
    const Result<MachineLock> first = MachineLock::acquire(path, "opledger compare a b");
    ASSERT_TRUE(first) << first.error().message;
    const Result<MachineLock> second = MachineLock::acquire(path, "opledger compare c d");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().kind, Error::Kind::kEnvironment);
    EXPECT_NE(second.error().message.find("opledger compare a b"), std::string::npos);
    EXPECT_NE(second.error().message.find("pid " + std::to_string(::getpid())), std::string::npos);
  }
  EXPECT_TRUE(MachineLock::acquire(path, "opledger compare c d"));
}

TEST(MachineLock, AFolderThatIsNotThereIsSaid) {
  const Result<MachineLock> lock = MachineLock::acquire("/nowhere/measure.lock", "x");
  ASSERT_FALSE(lock);
  EXPECT_NE(lock.error().message.find("/nowhere/measure.lock"), std::string::npos);
}

}  // namespace
}  // namespace opledger::platform
