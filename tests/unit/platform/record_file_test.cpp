// The record on disk: what a kill, a full disk or a damaged file leaves. Python's gzip is the outside reader.
#include "platform/record_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>

namespace opledger::platform {
namespace {

namespace fs = std::filesystem;

class RecordFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "opledger_record_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // Two lines, the second long enough to need more than one chunk when unpacked.
  std::string written(const std::string& name) const {
    auto writer = RecordWriter::open(path(name));
    EXPECT_TRUE(writer);
    EXPECT_TRUE(writer->append("first"));
    EXPECT_TRUE(writer->append(std::string(200000, 'x')));
    return path(name);
  }

  fs::path folder_;
};

TEST_F(RecordFile, GivesBackWhatWasAppendedPlainAndPacked) {
  const std::string expected = "first\n" + std::string(200000, 'x') + "\n";
  for (const char* name : {"r.json", "r.json.gz"}) {
    const auto text = read_record_text(written(name));
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_EQ(text->text, expected);
    EXPECT_FALSE(text->was_cut);
  }
  EXPECT_LT(fs::file_size(path("r.json.gz")), 2000U);
}

TEST_F(RecordFile, IsReadableByPythonsGzip) {
  const std::string command =
      "python3 -c \"import gzip,sys; t=gzip.open(sys.argv[1],'rt').read(); "
      "sys.exit(0 if t=='first\\n'+'x'*200000+'\\n' else 1)\" " +
      written("r.json.gz");
  EXPECT_EQ(std::system(command.c_str()), 0);
}

TEST_F(RecordFile, KeepsTheFirstLineWhereverTheSecondWasCut) {
  const std::string whole = written("r.json.gz");
  auto only_first = RecordWriter::open(path("first.json.gz"));
  ASSERT_TRUE(only_first && only_first->append("first"));
  const auto first_bytes = fs::file_size(path("first.json.gz"));
  for (auto bytes = first_bytes + 1; bytes < fs::file_size(whole); ++bytes) {
    fs::copy_file(whole, path("cut.json.gz"), fs::copy_options::overwrite_existing);
    fs::resize_file(path("cut.json.gz"), bytes);
    const auto text = read_record_text(path("cut.json.gz"));
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_EQ(text->text.substr(0, 6), "first\n") << bytes;
    EXPECT_TRUE(text->was_cut) << bytes;
  }
}

TEST_F(RecordFile, AnOlderRecordStaysUntilTheNewOneIsWorthMore) {
  const std::string name = written("r.json");
  fs::create_symlink(name, path("link.json"));
  auto writer = RecordWriter::open(path("link.json"));
  ASSERT_TRUE(writer) << writer.error().message;
  ASSERT_TRUE(writer->append("new"));
  EXPECT_EQ(writer->path(), fs::canonical(name).string() + ".part");
  EXPECT_EQ(read_record_text(name)->text.substr(0, 6), "first\n");
  EXPECT_EQ(read_record_text(writer->path())->text, "new\n");
  ASSERT_TRUE(writer->settle());
  ASSERT_TRUE(writer->settle());
  ASSERT_TRUE(writer->append("newer"));
  EXPECT_EQ(read_record_text(name)->text, "new\nnewer\n");
  EXPECT_FALSE(fs::exists(name + ".part"));
  EXPECT_TRUE(fs::is_symlink(path("link.json")));
}

TEST_F(RecordFile, WithoutAnOlderRecordTheNameIsTakenAtOnce) {
  std::ofstream(path("empty.json")).close();
  for (const char* name : {"new.json", "empty.json"}) {
    auto writer = RecordWriter::open(path(name));
    ASSERT_TRUE(writer && writer->append("line"));
    EXPECT_EQ(writer->path(), path(name));
    EXPECT_EQ(read_record_text(path(name))->text, "line\n");
  }
  auto nowhere = RecordWriter::open("/dev/null");
  ASSERT_TRUE(nowhere && nowhere->append("line") && nowhere->settle());
}

TEST_F(RecordFile, SaysThatADiskIsFull) {
  auto writer = RecordWriter::open("/dev/full");
  ASSERT_TRUE(writer) << writer.error().message;
  const Status status = writer->append("line");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, Error::Kind::kEnvironment);
  EXPECT_NE(status.error().message.find("/dev/full"), std::string::npos);
}

TEST_F(RecordFile, RefusesADamagedPackedFile) {
  const std::string name = written("r.json.gz");
  std::fstream file(name, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(12);
  file.write("\xff\xff\xff\xff", 4);
  file.close();
  const auto text = read_record_text(name);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().kind, Error::Kind::kBadInput);
  EXPECT_NE(text.error().message.find("damaged at byte"), std::string::npos);
}

TEST_F(RecordFile, RefusesAMissingFileAndAFolder) {
  EXPECT_FALSE(read_record_text(path("absent.json")));
  EXPECT_FALSE(read_record_text(folder_.string()));
  EXPECT_FALSE(RecordWriter::open(path("absent/r.json")));
}

TEST_F(RecordFile, ChecksTheRoomBeforeMeasuring) {
  EXPECT_TRUE(check_room(path("r.json"), 1));
  const Status status = check_room(path("r.json"), int64_t{1} << 60);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, Error::Kind::kEnvironment);
}

}  // namespace
}  // namespace opledger::platform
