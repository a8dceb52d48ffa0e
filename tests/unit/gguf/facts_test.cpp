#include "gguf/facts.h"

#include <gtest/gtest.h>
#include <limits>

namespace opledger::gguf {
namespace {

GgufFile file_with(Scalar value) {
  GgufFile file;
  file.path = "m.gguf";
  file.file_bytes = 1234;
  file.metadata.emplace("general.architecture", std::string("llama"));
  file.metadata.emplace("k", std::move(value));
  return file;
}

Fact fact(Scalar value) {
  return model_facts(file_with(std::move(value))).metadata.at("k");
}

TEST(GgufFacts, KeepsNumbersAndNamesTheFile) {
  const ModelFacts facts = model_facts(file_with(uint64_t{7}));
  EXPECT_EQ(facts.path, "m.gguf");
  EXPECT_EQ(facts.bytes, 1234U);
  EXPECT_EQ(facts.architecture, "llama");
  EXPECT_EQ(std::get<uint64_t>(facts.metadata.at("k")), 7U);
  EXPECT_EQ(std::get<int64_t>(fact(int64_t{-7})), -7);
  EXPECT_EQ(std::get<double>(fact(0.5)), 0.5);
}

TEST(GgufFacts, TurnsWhatJsonLacksIntoText) {
  EXPECT_EQ(std::get<std::string>(fact(true)), "true");
  EXPECT_EQ(std::get<std::string>(fact(std::numeric_limits<double>::quiet_NaN())), "nan");
  EXPECT_EQ(std::get<std::string>(fact(-std::numeric_limits<double>::infinity())), "-inf");
}

// Sequences from RFC 3629: overlong, a surrogate, beyond U+10FFFF, cut off.
TEST(GgufFacts, RepairsBrokenText) {
  EXPECT_EQ(std::get<std::string>(fact(std::string("gr\xC3\xBC\xC3\x9F"))), "gr\xC3\xBC\xC3\x9F");
  EXPECT_EQ(std::get<std::string>(fact(std::string("a\xFF") + "b")),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(std::get<std::string>(fact(std::string("\xC0\xAF"))), "\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(std::get<std::string>(fact(std::string("\xE2\x82"))), "\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_NE(std::get<std::string>(fact(std::string("\xED\xA0\x80"))), "\xED\xA0\x80");
  EXPECT_NE(std::get<std::string>(fact(std::string("\xF4\x90\x80\x80"))), "\xF4\x90\x80\x80");
}

TEST(GgufFacts, CutsLongText) {
  const std::string text = std::get<std::string>(fact(std::string(5000, 'x')));
  EXPECT_EQ(text.size(), 1024U);
  EXPECT_EQ(text.substr(1021), "...");
  EXPECT_EQ(std::get<std::string>(fact(std::string(1024, 'x'))), std::string(1024, 'x'));
}

TEST(GgufFacts, LeavesTheArchitectureEmptyWhenTheFileDoesNotSay) {
  EXPECT_EQ(model_facts(GgufFile{}).architecture, "");
}

}  // namespace
}  // namespace opledger::gguf
