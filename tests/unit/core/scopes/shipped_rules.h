// The rule files that the program ships, read from the source tree.
#pragma once

#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <memory>
#include <string>

#include "core/scopes/scopes.h"

namespace opledger::core::test {

inline Result<std::string> shipped_rule_text(const std::string& name) {
  std::ifstream file(std::string(OPLEDGER_SOURCE_DIR) + "/schema/rules/" + name + ".json");
  if (!file) return Error::bad_input("no rule file " + name);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

inline std::shared_ptr<const RuleSet> shipped_rules(const std::string& family) {
  const auto text = shipped_rule_text(family);
  const auto rules = parse_rules(*text, family + ".json", shipped_rule_text);
  EXPECT_TRUE(rules.is_ok()) << (rules ? "" : rules.error().message);
  return rules ? *rules : nullptr;
}

}  // namespace opledger::core::test
