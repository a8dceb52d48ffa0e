// What counts as a llama.cpp source tree, and whether libraries fit headers. The libraries are made here with
// the C compiler: three functions of ggml are all that the probe asks.
#include "session/engine_tree.h"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>

#include "session/build_command.h"
#include "session/engine_build.h"

namespace opledger::session {
namespace {

namespace fs = std::filesystem;

// 336 bytes, as a tensor of ggml 0.25 takes; the exact figure matters to nothing here.
const char* const kHeader =
    "#pragma once\n#include <stddef.h>\n"
    "enum ggml_op {\n    GGML_OP_NONE = 0,\n    GGML_OP_ADD,  // two\n    GGML_OP_COUNT_EQUAL,\n    "
    "GGML_OP_COUNT,\n};\n"
    "struct ggml_tensor { char bytes[336]; };\n"
    "const char * ggml_op_name(enum ggml_op op);\nsize_t ggml_tensor_overhead(void);\n";

std::string library_source(const std::string& second_op, int tensor_bytes) {
  return "#include <stddef.h>\nconst char * ggml_op_name(int i) {\n"
         "  static const char * n[] = {\"NONE\", \"" +
         second_op +
         "\", \"COUNT_EQUAL\"}; return n[i]; }\n"
         "size_t ggml_tensor_overhead(void) { return 32 + " +
         std::to_string(tensor_bytes) + "; }\n";
}

class EngineTree : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(::testing::TempDir()) /
            ("tree_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(root_);
    write("tree/CMakeLists.txt", "");
    write("tree/ggml/include/ggml.h", kHeader);
    write("tree/include/llama.h", "");
    write("tree/src/llama.cpp", "");
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& place, const std::string& text) const {
    fs::create_directories((root_ / place).parent_path());
    std::ofstream(root_ / place, std::ios::binary) << text;
  }
  void run(std::vector<std::string> argv) const {
    const Result<int> status = run_build_command({std::move(argv), root_ / "cc.log", {}, {}});
    ASSERT_TRUE(status.is_ok() && *status == 0) << read_log(root_ / "cc.log");
  }
  // lib/libllama.so that needs libggml.so in the folder `home`.
  void build_libraries(const std::string& ggml_source, const std::string& home) const {
    write("ggml.c", ggml_source);
    write("llama.c",
          "#include <stddef.h>\nsize_t ggml_tensor_overhead(void);\nsize_t llama(void) { return "
          "ggml_tensor_overhead(); }\n");
    fs::create_directories(root_ / home);
    fs::create_directories(root_ / "lib");
    const std::string ggml = (root_ / home / "libggml.so").string();
    run({"cc", "-shared", "-fPIC", (root_ / "ggml.c").string(), "-Wl,-soname,libggml.so", "-o", ggml});
    run({"cc", "-shared", "-fPIC", (root_ / "llama.c").string(), ggml, "-o",
         (root_ / "lib/libllama.so").string()});
  }
  [[nodiscard]] std::string version_problem() const {
    const Result<EngineLibraries> found = find_libraries(root_ / "lib", root_ / "scratch");
    if (!found) return found.error().message;
    const Status same = check_same_version(root_ / "tree", *found, root_ / "scratch");
    return same ? "" : same.error().message;
  }

  fs::path root_;
};

TEST_F(EngineTree, AcceptsATreeWithAllItsParts) {
  EXPECT_TRUE(check_tree(root_ / "tree").is_ok());
}

TEST_F(EngineTree, NamesThePartThatIsMissing) {
  for (const char* part : {"CMakeLists.txt", "ggml/include/ggml.h", "include/llama.h", "src/llama.cpp"}) {
    SetUp();
    fs::remove(root_ / "tree" / part);
    const Status status = check_tree(root_ / "tree");
    ASSERT_FALSE(status.is_ok()) << part;
    const std::string shown = std::string(part) == "src/llama.cpp" ? "src/llama*.cpp" : part;
    EXPECT_NE(status.error().message.find("it has no " + shown), std::string::npos) << status.error().message;
  }
  EXPECT_FALSE(check_tree(root_ / "nowhere").is_ok());
}

TEST_F(EngineTree, ReadsOperationNamesUpToTheCountOnly) {
  EXPECT_EQ(op_names_of_header(kHeader), (std::vector<std::string>{"NONE", "ADD", "COUNT_EQUAL"}));
  EXPECT_TRUE(op_names_of_header("int main;").empty());
}

TEST_F(EngineTree, KnowsTheForkByItsOwnOperations) {
  EXPECT_EQ(family_of_tree(root_ / "tree").value(), "llama.cpp");
  write("tree/ggml/include/ggml.h",
        "enum ggml_op {\n GGML_OP_NONE,\n GGML_OP_MOE_FUSED_UP_GATE,\n GGML_OP_COUNT\n};\n");
  EXPECT_EQ(family_of_tree(root_ / "tree").value(), "ik_llama.cpp");
}

TEST_F(EngineTree, AcceptsLibrariesThatFitTheirHeaders) {
  build_libraries(library_source("ADD", 336), "lib");
  EXPECT_EQ(version_problem(), "");
}

TEST_F(EngineTree, FindsALibraryThatAWheelBundlesInASiblingFolder) {
  build_libraries(library_source("ADD", 336), "some_engine.libs");
  const Result<EngineLibraries> found = find_libraries(root_ / "lib", root_ / "scratch");
  ASSERT_TRUE(found.is_ok()) << found.error().message;
  EXPECT_EQ(found->libraries,
            (std::vector<fs::path>{root_ / "lib/libllama.so", root_ / "some_engine.libs/libggml.so"}));
  EXPECT_EQ(found->folders, (std::vector<fs::path>{root_ / "lib", root_ / "some_engine.libs"}));
}

TEST_F(EngineTree, NamesALibraryThatTheLoaderCannotFind) {
  build_libraries(library_source("ADD", 336), "elsewhere");
  EXPECT_NE(version_problem().find("needs libggml.so"), std::string::npos) << version_problem();
}

TEST_F(EngineTree, SaysWhichOperationDiffersBetweenHeadersAndLibrary) {
  build_libraries(library_source("SUB", 336), "lib");
  EXPECT_NE(version_problem().find("operation 1 is ADD in the headers and SUB in the library"),
            std::string::npos)
      << version_problem();
}

TEST_F(EngineTree, SaysThatATensorsSizeDiffers) {
  build_libraries(library_source("ADD", 320), "lib");
  EXPECT_NE(version_problem().find("a tensor takes 336 bytes in the headers and 320 in the library"),
            std::string::npos)
      << version_problem();
}

TEST_F(EngineTree, SaysThatHeadersBesideTheLibraryDiffer) {
  build_libraries(library_source("ADD", 336), "lib");
  write("include/ggml.h", "// another version\n");
  EXPECT_NE(version_problem().find("differs from"), std::string::npos) << version_problem();
}

TEST_F(EngineTree, SaysWhereNoLibraryIs) {
  fs::create_directories(root_ / "lib");
  EXPECT_NE(version_problem().find("holds no libllama.so"), std::string::npos) << version_problem();
}

TEST(SplitCmakeOptions, TakesQuotesAsAShellDoes) {
  const auto words = split_cmake_options(R"(-DA=1  "-DB=x y" -DC='z w')");
  ASSERT_TRUE(words.is_ok());
  EXPECT_EQ(*words, (std::vector<std::string>{"-DA=1", "-DB=x y", "-DC=z w"}));
  EXPECT_TRUE(split_cmake_options("")->empty());
}

TEST(SplitCmakeOptions, RefusesAnythingButDefinitions) {
  for (const char* bad : {"-GNinja", "-B /tmp", "-DX", "A=1", "\"-DA=1"})
    EXPECT_FALSE(split_cmake_options(bad).is_ok()) << bad;
}

}  // namespace
}  // namespace opledger::session
