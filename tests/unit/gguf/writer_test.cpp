#include "gguf/writer.h"

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

#include "file_size_limit.h"
#include "gguf/reader.h"
#include "gguf_bytes.h"

namespace opledger::gguf {
namespace {

using test::Bytes;
using test::TempDir;
using ::testing::HasSubstr;

std::string contents(const std::filesystem::path& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

size_t files_in(const TempDir& dir) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(dir.path()), {}));
}

Layout small_layout() {
  Layout layout;
  layout.metadata = {{"u", uint32_t{7}}, {"s", std::string("text")}, {"l", std::vector<int32_t>{1, -2}}};
  layout.tensors = {{"a", find_type("f32"), {3}}, {"b", find_type("q8_0"), {32, 2}}};
  return layout;
}

Status fill_with_index(const Layout& layout, size_t index, const Sink& sink) {
  const std::vector<std::byte> bytes(bytes_of(layout.tensors[index]), static_cast<std::byte>(index + 1));
  return sink(bytes);
}

// Built field by field from the specification: type ids 4, 8 and 9 of 5; tensors padded to 32 bytes.
TEST(GgufWriter, WritesWhatTheSpecificationSays) {
  const TempDir dir;
  const Layout layout = small_layout();
  ASSERT_TRUE(write_gguf(layout, dir.file("m.gguf"),
                         [&](size_t i, const Sink& s) { return fill_with_index(layout, i, s); }));
  Bytes b;
  b.raw("GGUF").u32(3).u64(2).u64(3);
  b.text("u")
      .u32(4)
      .u32(7)
      .text("s")
      .u32(8)
      .text("text")
      .text("l")
      .u32(9)
      .u32(5)
      .u64(2)
      .value<int32_t>(1)
      .value<int32_t>(-2);
  b.text("a").u32(1).u64(3).u32(0).u64(0);
  b.text("b").u32(2).u64(32).u64(2).u32(8).u64(32);
  b.pad_to(32).raw(std::string(12, '\1')).pad_to(32).raw(std::string(68, '\2')).pad_to(32);
  EXPECT_EQ(contents(dir.file("m.gguf")), b.str());
  EXPECT_EQ(file_bytes(layout), b.size());
}

TEST(GgufWriter, WritesEveryValueSoThatTheReaderFindsIt) {
  const TempDir dir;
  Layout layout;
  layout.metadata = {{"i", int32_t{-3}}, {"w", uint64_t{1} << 40}, {"f", 0.5F}, {"t", true}};
  ASSERT_TRUE(write_gguf(layout, dir.file("m.gguf"), [](size_t, const Sink&) { return Status(); }));
  const Result<GgufFile> r = read_gguf(dir.file("m.gguf"));
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->integer("i"), -3);
  EXPECT_EQ(r->integer("w"), int64_t{1} << 40);
  EXPECT_EQ(r->number("f"), 0.5);
  EXPECT_EQ(std::get<bool>(r->metadata.at("t")), true);
}

TEST(GgufWriter, ReplacesAFileAndFollowsALink) {
  const TempDir dir;
  test::write_file(dir.file("real.gguf"), "old");
  std::filesystem::create_symlink("real.gguf", dir.file("link.gguf"));
  const Layout layout = small_layout();
  ASSERT_TRUE(write_gguf(layout, dir.file("link.gguf"),
                         [&](size_t i, const Sink& s) { return fill_with_index(layout, i, s); }));
  EXPECT_TRUE(std::filesystem::is_symlink(dir.file("link.gguf")));
  EXPECT_EQ(std::filesystem::file_size(dir.file("real.gguf")), file_bytes(layout));
}

TEST(GgufWriter, RefusesDestinationsThatAreNoFile) {
  const TempDir dir;
  const auto refused = [](const std::filesystem::path& path) {
    const Status s = write_gguf(small_layout(), path, [](size_t, const Sink&) { return Status(); });
    EXPECT_EQ(s.error().kind, Error::Kind::kBadInput);
    return s.error().message;
  };
  EXPECT_THAT(refused(dir.path()), HasSubstr("is a directory"));
  EXPECT_THAT(refused(dir.file("no/m.gguf")), HasSubstr("there is no folder"));
  EXPECT_THAT(refused(""), HasSubstr("give the name of a file"));
  EXPECT_THAT(refused(dir.file("new/")), HasSubstr("give the name of a file"));
  EXPECT_THAT(refused("/dev/null"), HasSubstr("not a regular file"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(GgufWriter, LeavesNothingBehindWhenTheSourceFails) {
  const TempDir dir;
  const Status s = write_gguf(small_layout(), dir.file("m.gguf"), [](size_t, const Sink&) -> Status {
    return Error::failure("no more weights");
  });
  EXPECT_EQ(s.error().message, "no more weights");
  EXPECT_EQ(files_in(dir), 0U);
}

TEST(GgufWriter, SaysBeforeComputingThatThereIsNoRoom) {
  const TempDir dir;
  Layout layout;
  layout.tensors = {{"big", find_type("f32"), {1 << 20}}};
  bool is_computed = false;
  const test::FileSizeLimit limit(64 * 1024);
  const Status s = write_gguf(layout, dir.file("m.gguf"), [&](size_t, const Sink&) {
    is_computed = true;
    return Status();
  });
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().kind, Error::Kind::kEnvironment);
  EXPECT_THAT(s.error().message, HasSubstr("m.gguf needs 4 MB"));
  EXPECT_FALSE(is_computed);
  EXPECT_EQ(files_in(dir), 0U);
}

}  // namespace
}  // namespace opledger::gguf
