// Whole outputs against files in golden/, which were read by a person before they were kept
// (`OPLEDGER_UPDATE_GOLDEN=1` writes them anew), and JSON against the schemas.
#pragma once

#include <atomic>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <unistd.h>

namespace opledger::report {

inline void expect_golden(const std::string& text, const std::string& name) {
  const std::string path = std::string(OPLEDGER_SOURCE_DIR) + "/tests/unit/report/golden/" + name;
  if (std::getenv("OPLEDGER_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  std::ostringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(text, expected.str()) << name;
}

/// `schema`: a file of schema/, which may refer to others beside it.
inline void expect_valid(const std::string& json, const std::string& schema) {
  if (std::system("python3 -c 'import jsonschema' 2>/dev/null") != 0)
    FAIL() << "python3-jsonschema is not installed: run tools/install_packages tests";
  static std::atomic<int> number = 0;
  const std::string path =
      fmt::format("{}opledger_{}_{}.json", ::testing::TempDir(), ::getpid(), number.fetch_add(1));
  std::ofstream(path) << json;
  const std::string command =
      "python3 -W ignore -c \"import json,pathlib,sys,jsonschema; p=pathlib.Path(sys.argv[2]); "
      "s=json.loads(p.read_text()); r=jsonschema.RefResolver(p.as_uri(), s); "
      "jsonschema.Draft202012Validator(s, resolver=r).validate(json.load(open(sys.argv[1])))\" " +
      path + " " + OPLEDGER_SOURCE_DIR + "/schema/" + schema;
  EXPECT_EQ(std::system(command.c_str()), 0) << path;
}

}  // namespace opledger::report
