// Engines written and read back, refused when they are not what was added. Hash values come from the xxhsum
// program (`xxhsum -H3`), not from this code.
#include "session/registry.h"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>

namespace opledger::session {
namespace {

namespace fs = std::filesystem;

class RegistryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cache_ = fs::path(::testing::TempDir()) /
             ("registry_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(cache_);
    fs::create_directories(cache_);
  }
  void TearDown() override { fs::remove_all(cache_); }

  static void write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }

  // An engine whose one library holds `text`.
  [[nodiscard]] EngineEntry entry_with(const std::string& text) const {
    write(cache_ / "libllama.so", text);
    write(cache_ / "adapter", "program");
    EngineEntry entry{"ik-1.5", "ggml",    cache_ / "adapter",   "ik_llama.cpp", {cache_, "/opt/x.libs"},
                      {},       "/src/ik", {{"GGML_AVX2", "ON"}}};
    entry.libraries.push_back(library_facts(cache_ / "libllama.so").value());
    return entry;
  }

  fs::path cache_;
};

TEST_F(RegistryTest, KeepsEveryFieldOfAnEngine) {
  const Registry registry(cache_);
  const EngineEntry written = entry_with("abc");
  ASSERT_TRUE(registry.save(written).is_ok());
  const Result<EngineEntry> read = registry.find("ik-1.5");
  ASSERT_TRUE(read.is_ok()) << read.error().message;
  EXPECT_EQ(read->kind, "ggml");
  EXPECT_EQ(read->adapter, written.adapter);
  EXPECT_EQ(read->family, "ik_llama.cpp");
  EXPECT_EQ(read->library_path, written.library_path);
  EXPECT_EQ(read->source, "/src/ik");
  EXPECT_EQ(read->build, written.build);
  ASSERT_EQ(read->libraries.size(), 1U);
  EXPECT_EQ(read->libraries[0].bytes, 3U);
  EXPECT_EQ(read->libraries[0].xxh3, "78af5f94892f3950");  // printf abc | xxhsum -H3
}

TEST_F(RegistryTest, HashesAnEmptyFileAsXxhsumDoes) {
  write(cache_ / "empty", "");
  EXPECT_EQ(xxh3_of_file(cache_ / "empty").value(), "2d06800538d394c2");  // printf '' | xxhsum -H3
}

TEST_F(RegistryTest, CallsAnUnchangedEngineFresh) {
  EXPECT_TRUE(check_fresh(entry_with("abc")).is_ok());
}

TEST_F(RegistryTest, CallsAnEngineStaleWhenItsLibraryChangedAtTheSameSize) {
  const EngineEntry entry = entry_with("abc");
  write(cache_ / "libllama.so", "abd");
  const Status fresh = check_fresh(entry);
  ASSERT_FALSE(fresh.is_ok());
  EXPECT_EQ(fresh.error().kind, Error::Kind::kBadInput);
  EXPECT_NE(fresh.error().message.find("libllama.so changed"), std::string::npos) << fresh.error().message;
  EXPECT_NE(fresh.error().message.find("engine add ik-1.5"), std::string::npos) << fresh.error().message;
}

TEST_F(RegistryTest, CallsAnEngineStaleWhenItsLibraryIsGone) {
  const EngineEntry entry = entry_with("abc");
  fs::remove(cache_ / "libllama.so");
  EXPECT_FALSE(check_fresh(entry).is_ok());
}

TEST_F(RegistryTest, NamesTheAdapterThatIsGone) {
  const EngineEntry entry = entry_with("abc");
  fs::remove(cache_ / "adapter");
  const Status fresh = check_fresh(entry);
  ASSERT_FALSE(fresh.is_ok());
  EXPECT_NE(fresh.error().message.find("adapter"), std::string::npos);
}

TEST_F(RegistryTest, ListsNothingWhereThereIsNoCache) {
  const Result<std::vector<EngineEntry>> entries = Registry(cache_ / "nowhere").list();
  ASSERT_TRUE(entries.is_ok());
  EXPECT_TRUE(entries->empty());
}

TEST_F(RegistryTest, NamesTheKnownEnginesWhenOneIsUnknown) {
  const Registry registry(cache_);
  ASSERT_TRUE(registry.save(entry_with("abc")).is_ok());
  const Result<EngineEntry> unknown = registry.find("llama");
  ASSERT_FALSE(unknown.is_ok());
  EXPECT_NE(unknown.error().message.find("these are: ik-1.5"), std::string::npos) << unknown.error().message;
}

TEST_F(RegistryTest, RefusesAFileThatIsNoJsonOrLacksAKey) {
  const Registry registry(cache_);
  fs::create_directories(registry.folder_of("bad"));
  for (const char* text : {"{", "{}", R"({"name": "bad", "kind": 3})", "[1]", ""}) {
    write(registry.folder_of("bad") / "engine.json", text);
    const Result<EngineEntry> read = registry.find("bad");
    ASSERT_FALSE(read.is_ok()) << text;
    EXPECT_NE(read.error().message.find("engine.json"), std::string::npos) << read.error().message;
  }
}

TEST_F(RegistryTest, RemovesTheEngineAndLeavesItsLibrariesAlone) {
  const Registry registry(cache_);
  ASSERT_TRUE(registry.save(entry_with("abc")).is_ok());
  ASSERT_TRUE(registry.remove("ik-1.5").is_ok());
  EXPECT_FALSE(fs::exists(registry.folder_of("ik-1.5")));
  EXPECT_TRUE(fs::exists(cache_ / "libllama.so"));
  EXPECT_FALSE(registry.remove("ik-1.5").is_ok());
}

TEST(EngineName, IsAFolderNameThatNeedsNoQuoting) {
  for (const char* good : {"llama", "ik", "llama_b1", "ik-0.1.5", "7"})
    EXPECT_TRUE(is_engine_name(good)) << good;
  for (const char* bad : {"", ".", "..", "-x", ".x", "A", "a b", "a/b", "a@b", "é"})
    EXPECT_FALSE(is_engine_name(bad)) << bad;
}

}  // namespace
}  // namespace opledger::session
