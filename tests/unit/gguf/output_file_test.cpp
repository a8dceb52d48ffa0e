#include "gguf/output_file.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "file_size_limit.h"
#include "gguf_bytes.h"

namespace opledger::gguf::detail {
namespace {

using test::TempDir;

TEST(OutputFile, HasItsNameOnlyWhenItIsWhole) {
  const TempDir dir;
  Result<OutputFile> file = OutputFile::create(dir.file("m"), 3);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->append(std::vector<std::byte>(3)));
  EXPECT_FALSE(std::filesystem::exists(dir.file("m")));
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(std::filesystem::file_size(dir.file("m")), 3U);
}

TEST(OutputFile, VanishesWhenItIsGivenUp) {
  const TempDir dir;
  {
    Result<OutputFile> file = OutputFile::create(dir.file("m"), 3 << 20);
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->append_zeros(3 << 20));
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

// With nothing reserved, the end of the room shows only while writing.
TEST(OutputFile, SaysSoAndVanishesWhenItCannotGoOn) {
  const TempDir dir;
  const test::FileSizeLimit limit(1 << 20);
  {
    Result<OutputFile> file = OutputFile::create(dir.file("m"), 0);
    ASSERT_TRUE(file);
    const Status s = file->append_zeros(3 << 20);
    ASSERT_FALSE(s);
    EXPECT_EQ(s.error().kind, Error::Kind::kEnvironment);
    EXPECT_NE(s.error().message.find("could not be written to its end"), std::string::npos);
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(OutputFile, KeepsBytesInOrderAcrossItsBuffer) {
  const TempDir dir;
  std::string expected;
  {
    Result<OutputFile> file = OutputFile::create(dir.file("m"), 0);
    ASSERT_TRUE(file);
    for (int i = 0; i < 9; ++i) {
      const std::vector<std::byte> piece(300001, static_cast<std::byte>('a' + i));
      expected.append(piece.size(), static_cast<char>('a' + i));
      ASSERT_TRUE(file->append(piece));
    }
    EXPECT_EQ(file->size(), expected.size());
    ASSERT_TRUE(file->commit());
  }
  std::ifstream in(dir.file("m"), std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), expected);
}

}  // namespace
}  // namespace opledger::gguf::detail
