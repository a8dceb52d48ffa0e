// Rule files: what is accepted, what is refused, and how one extends another.
#include <gtest/gtest.h>
#include <string>

#include "../graph/graph_builder.h"
#include "core/scopes/scopes.h"
#include "shipped_rules.h"

namespace opledger::core {
namespace {

std::string file(const std::string& body) {
  return R"({"schema": "opledger-rules", "version": 1, "family": "mine", )" + body + "}";
}

void expect_refused(const std::string& text, const std::string& message_part) {
  const auto rules = parse_rules(text, "mine.json");
  ASSERT_FALSE(rules) << message_part;
  EXPECT_EQ(rules.error().kind, Error::Kind::kBadInput);
  EXPECT_NE(rules.error().message.find("mine.json"), std::string::npos) << rules.error().message;
  EXPECT_NE(rules.error().message.find(message_part), std::string::npos) << rules.error().message;
}

Graph one_node(const std::string& op) {
  test::GraphBuilder b;
  b.node(op, {});
  return b.graph;
}

TEST(RuleFile, IsRefusedWhenItCouldMatchMoreThanMeant) {
  expect_refused(file(R"("rules": [{"opp": "ADD", "category": "norm"}])"),
                 "rules[0] has an unknown key \"opp\"");
  expect_refused(file(R"("rules": [{"op": "ADD", "category": "norms"}])"), "\"norms\", which is no category");
  expect_refused(file(R"("rules": [{"op": "ADD", "from": "norms", "category": "norm"}])"), "no category");
  expect_refused(file(R"("rules": [{"op": [], "category": "norm"}])"), "rules[0].op");
  expect_refused(file(R"("rules": [{"reads": "cache", "category": "norm"}])"), "rules[0].reads knows");
  expect_refused(file(R"("rules": [{"writes": "disk", "category": "norm"}])"), "rules[0].writes knows");
  expect_refused(file(R"("rules": [{"region": "r", "category": "norm"}])"), "region \"r\"");
  expect_refused(file(R"("rules": [{"category": "norm", "stage": "s"}])"), "stage \"s\"");
  expect_refused(file(R"("rules": [{"op": "ADD"}])"), "rules[0] needs text \"category\"");
}

TEST(RuleFile, IsRefusedWhenItIsAnotherKindOfFile) {
  expect_refused("{", "is not JSON");
  expect_refused("[1]", "is not an object");
  expect_refused(R"({"family": "x"})", "opledger-rules");
  expect_refused(R"({"schema": "opledger-rules", "version": 2, "family": "x"})", "version 1");
}

TEST(RuleFile, IsRefusedWhenWhatItExtendsCannotBeRead) {
  expect_refused(file(R"("extends": "base")"), "extends \"base\"");
}

TEST(RuleFile, IsRefusedWhenItExtendsItself) {
  const std::string text = file(R"("extends": "mine")");
  const auto rules =
      parse_rules(text, "mine.json", [&](const std::string&) -> Result<std::string> { return text; });
  ASSERT_FALSE(rules);
  EXPECT_NE(rules.error().message.find("never ends"), std::string::npos);
}

TEST(RuleFile, AsksItsOwnRulesBeforeThoseOfItsBase) {
  const std::string base = file(R"("rules": [{"op": ["ADD", "MUL"], "category": "elementwise"}])");
  const auto rules = parse_rules(file(R"("extends": "base", "rules": [{"op": "ADD", "category": "norm"}])"),
                                 "mine.json", [&](const std::string& name) -> Result<std::string> {
                                   EXPECT_EQ(name, "base");
                                   return base;
                                 });
  ASSERT_TRUE(rules) << rules.error().message;
  EXPECT_EQ(categories_of(**rules, one_node("ADD")).at(0), "norm");
  EXPECT_EQ(categories_of(**rules, one_node("MUL")).at(0), "elementwise");
  EXPECT_EQ(categories_of(**rules, one_node("SUB")).at(0), "unsorted");
}

TEST(RuleFile, TakesAStarAtTheEndForAnything) {
  const auto rules =
      parse_rules(file(R"("rules": [{"op": "UNARY:*", "category": "elementwise"}])"), "mine.json");
  ASSERT_TRUE(rules) << rules.error().message;
  EXPECT_EQ(categories_of(**rules, one_node("UNARY:SILU")).at(0), "elementwise");
  EXPECT_EQ(categories_of(**rules, one_node("UNARY")).at(0), "unsorted");
}

TEST(ShippedRules, Parse) {
  EXPECT_NE(test::shipped_rules("llama.cpp"), nullptr);
  EXPECT_NE(test::shipped_rules("ik_llama.cpp"), nullptr);
  EXPECT_NE(test::shipped_rules("ggml"), nullptr);
}

}  // namespace
}  // namespace opledger::core
