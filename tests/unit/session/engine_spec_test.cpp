// Specs as people type them; the expected readings are written by hand.
#include "session/engine_spec.h"

#include <gtest/gtest.h>
#include <map>
#include <string>

namespace opledger::session {
namespace {

using Flags = std::map<std::string, std::string>;

TEST(EngineSpec, IsANameAlone) {
  const Result<EngineSpec> spec = parse_engine_spec("llama");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->name, "llama");
  EXPECT_TRUE(spec->flags.empty());
  EXPECT_FALSE(spec->model_path);
}

TEST(EngineSpec, HoldsFlagsWithoutTheirDash) {
  const Result<EngineSpec> spec = parse_engine_spec("ik@rtr=1,-fa=0");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->flags, (Flags{{"rtr", "1"}, {"fa", "0"}}));
}

TEST(EngineSpec, AQuotedValueMayHoldCommasAndEquals) {
  const Result<EngineSpec> spec = parse_engine_spec("llama@ot=\"exps=CPU,attn=CPU\",fa=1");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->flags, (Flags{{"ot", "exps=CPU,attn=CPU"}, {"fa", "1"}}));
}

TEST(EngineSpec, MIsTheModel) {
  const Result<EngineSpec> spec = parse_engine_spec("llama@m=\"my model.gguf\"");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->model_path, "my model.gguf");
  EXPECT_TRUE(spec->flags.empty());
}

TEST(EngineSpec, ExecNamesAnyProgram) {
  const Result<EngineSpec> spec = parse_engine_spec("exec:/opt/my/engine@fa=1");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->program, "/opt/my/engine");
  EXPECT_EQ(spec->name, "engine");
}

class BadSpec : public ::testing::TestWithParam<const char*> {};

TEST_P(BadSpec, IsOneLineThatQuotesIt) {
  const Result<EngineSpec> spec = parse_engine_spec(GetParam());
  ASSERT_FALSE(spec);
  EXPECT_EQ(spec.error().kind, Error::Kind::kBadInput);
  EXPECT_NE(spec.error().message.find(GetParam()), std::string::npos);
  EXPECT_EQ(spec.error().message.find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Specs, BadSpec,
                         ::testing::Values("", "@fa=1", "llama@", "llama@fa", "llama@fa=", "llama@=1",
                                           "llama@fa=1,", "llama@fa=1,fa=0", "llama@m=a,m=b",
                                           "llama@ot=\"open", "llama@ot=\"a\"b", "llama@-=1", "exec:"));

TEST(LoadSettings, TheSpecOverridesTheCommandLine) {
  const Result<EngineSpec> spec = parse_engine_spec("llama@fa=0,m=b.gguf,t=1");
  const Result<LoadSettings> settings =
      load_settings(*spec, {{"fa", "1"}, {"m", "a.gguf"}, {"ub", "128"}, {"ctk", "f16"}}, 4);
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->model_path, "b.gguf");
  EXPECT_EQ(settings->threads, 1);
  EXPECT_EQ(settings->ubatch_tokens, 128);
  EXPECT_EQ(settings->batch_tokens, 2048);
  EXPECT_EQ(settings->flags, (Flags{{"fa", "0"}, {"ctk", "f16"}}));
}

TEST(LoadSettings, UseEveryCoreUnlessTold) {
  const Result<LoadSettings> settings = load_settings(*parse_engine_spec("llama"), {{"m", "a"}}, 6);
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->threads, 6);
}

TEST(LoadSettings, RefuseMoreThreadsThanCores) {
  const Result<LoadSettings> settings =
      load_settings(*parse_engine_spec("llama"), {{"m", "a"}, {"t", "5"}}, 4);
  ASSERT_FALSE(settings);
  EXPECT_NE(settings.error().message.find("-t 5"), std::string::npos);
}

TEST(LoadSettings, RefuseThreadsThatAreNoNumber) {
  for (const char* text : {"0", "-1", "two", "2x", ""}) {
    EXPECT_FALSE(load_settings(*parse_engine_spec("llama"), {{"m", "a"}, {"t", text}}, 4)) << text;
  }
}

TEST(LoadSettings, NeedAModel) {
  const Result<LoadSettings> settings = load_settings(*parse_engine_spec("llama"), {}, 4);
  ASSERT_FALSE(settings);
  EXPECT_NE(settings.error().message.find("-m"), std::string::npos);
}

}  // namespace
}  // namespace opledger::session
