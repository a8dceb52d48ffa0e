// Reads rule files. Refuses unknown keys, categories and regions: a misspelt condition would match
// everything.
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "core/scopes/rules.h"

namespace opledger::core {

namespace {

using Json = nlohmann::json;

/// Thrown and caught inside this file only.
struct BadRules : std::runtime_error {
  using std::runtime_error::runtime_error;
};

constexpr std::array<std::string_view, 14> kCategories = {
    "dense_proj", "moe_experts", "moe_router",     "attention",  "linear_attention",
    "kv_write",   "state_write", "moe_combine",    "norm",       "rope",
    "lm_head",    "embedding",   "copy_transpose", "elementwise"};

/// Reads one file; every message starts with its name.
class Reader {
 public:
  Reader(std::string_view file_name, RuleSet& rules) : file_(file_name), rules_(rules) {}

  /// Adds the file's rules, regions and tables to the set; what is there already wins. Returns what it
  /// extends.
  std::string read(const Json& file) {
    require(file.is_object(), "is not an object");
    only_keys(file, "the file",
              {"schema", "version", "family", "extends", "about", "regions", "stages", "rules", "same_work",
               "weight_parts", "category_roles"});
    require(file.value("schema", "") == "opledger-rules", "has no \"schema\": \"opledger-rules\"");
    require(file.value("version", 0) == 1, "is not version 1 of the rule format");
    if (rules_.family.empty()) rules_.family = text(file, "family", "the file");
    read_regions(file);
    read_stages(file);
    read_tables(file);
    read_rules(file);
    return file.contains("extends") ? text(file, "extends", "the file") : std::string();
  }

 private:
  void require(bool holds, const std::string& what) const {
    if (!holds) throw BadRules(fmt::format("rule file {}: {}", file_, what));
  }

  void only_keys(const Json& object, const std::string& where,
                 std::initializer_list<std::string_view> allowed) const {
    for (const auto& [key, value] : object.items()) {
      require(std::find(allowed.begin(), allowed.end(), key) != allowed.end(),
              fmt::format("{} has an unknown key \"{}\"", where, key));
    }
  }

  std::string text(const Json& object, const char* key, const std::string& where) const {
    require(object.contains(key) && object[key].is_string(), fmt::format("{} needs text \"{}\"", where, key));
    return object[key].get<std::string>();
  }

  /// One text or a list of texts; an absent key gives an empty list.
  std::vector<std::string> texts(const Json& object, const char* key, const std::string& where) const {
    if (!object.contains(key)) return {};
    const Json& value = object[key];
    if (value.is_string()) return {value.get<std::string>()};
    require(value.is_array() && !value.empty(), fmt::format("{}.{} is neither text nor a list", where, key));
    std::vector<std::string> list;
    for (const Json& entry : value) {
      require(entry.is_string(), fmt::format("{}.{} holds something else than text", where, key));
      list.push_back(entry.get<std::string>());
    }
    return list;
  }

  std::vector<std::string> categories(const Json& object, const char* key, const std::string& where) const {
    auto list = texts(object, key, where);
    for (const auto& entry : list) require_category(entry, where);
    return list;
  }

  void require_category(const std::string& category, const std::string& where) const {
    require(std::find(kCategories.begin(), kCategories.end(), category) != kCategories.end(),
            fmt::format("{} names \"{}\", which is no category", where, category));
  }

  std::vector<TensorKind> kinds(const Json& object, const std::string& where) const {
    std::vector<TensorKind> list;
    for (const auto& kind : texts(object, "reads", where)) {
      if (kind == "weight") list.push_back(TensorKind::kWeight);
      if (kind == "kv") list.push_back(TensorKind::kKv);
      if (kind == "state") list.push_back(TensorKind::kState);
      if (kind == "input") list.push_back(TensorKind::kInput);
    }
    require(list.size() == texts(object, "reads", where).size(),
            fmt::format("{}.reads knows weight, kv, state and input", where));
    return list;
  }

  std::optional<Lasting> lasting(const Json& object, const std::string& where) const {
    if (!object.contains("writes")) return std::nullopt;
    const std::string value = text(object, "writes", where);
    require(value == "kv" || value == "state" || value == "none",
            fmt::format("{}.writes knows kv, state and none", where));
    if (value == "kv") return Lasting::kKv;
    return value == "state" ? Lasting::kState : Lasting::kNone;
  }

  NodePattern pattern(const Json& object, const std::string& where) const {
    NodePattern pattern;
    pattern.ops = texts(object, "op", where);
    pattern.roles = texts(object, "role", where);
    pattern.names = texts(object, "name", where);
    pattern.reads = kinds(object, where);
    pattern.from = categories(object, "from", where);
    pattern.from_all = categories(object, "from_all", where);
    pattern.from_roles = texts(object, "from_role", where);
    pattern.writes = lasting(object, where);
    if (object.contains("region")) pattern.region = text(object, "region", where);
    return pattern;
  }

  void read_regions(const Json& file) {
    if (!file.contains("regions")) return;
    for (const auto& [name, region] : file["regions"].items()) {
      const std::string where = fmt::format("region \"{}\"", name);
      require(region.is_object() && region.contains("from") && region.contains("to"),
              where + " needs \"from\" and \"to\"");
      only_keys(region, where, {"from", "to"});
      for (const char* end : {"from", "to"}) only_keys(region[end], where, {"op", "role", "name"});
      rules_.regions.try_emplace(name, Region{pattern(region["from"], where), pattern(region["to"], where)});
    }
  }

  void read_stages(const Json& file) {
    if (!file.contains("stages")) return;
    for (const auto& [name, why] : file["stages"].items()) {
      require(why.is_string(), fmt::format("stage \"{}\" needs a text that says why", name));
      rules_.stages.try_emplace(name, why.get<std::string>());
    }
  }

  void read_tables(const Json& file) {
    for (const auto& [key, table] :
         {std::pair{"same_work", &rules_.same_work}, std::pair{"weight_parts", &rules_.weight_parts}}) {
      if (!file.contains(key)) continue;
      for (const auto& [name, parts] : file[key].items()) {
        table->try_emplace(name, texts(file[key], name.c_str(), key));
      }
    }
    if (!file.contains("category_roles")) return;
    for (const auto& [category, role] : file["category_roles"].items()) {
      require_category(category, "category_roles");
      rules_.category_roles.try_emplace(category, text(file["category_roles"], category.c_str(), "it"));
    }
  }

  void read_rules(const Json& file) {
    if (!file.contains("rules")) return;
    require(file["rules"].is_array(), "\"rules\" is not a list");
    for (size_t i = 0; i < file["rules"].size(); ++i) {
      const Json& entry = file["rules"][i];
      const std::string where = fmt::format("rules[{}]", i);
      require(entry.is_object(), where + " is not an object");
      only_keys(entry, where,
                {"op", "role", "name", "reads", "from", "from_all", "from_role", "writes", "region",
                 "category", "stage", "why"});
      Rule rule{pattern(entry, where), text(entry, "category", where), {}};
      require_category(rule.category, where);
      if (entry.contains("stage")) rule.stage = text(entry, "stage", where);
      rules_.rules.push_back(std::move(rule));
    }
  }

  std::string file_;
  RuleSet& rules_;
};

/// Regions and stages may be declared in a file further down the chain, so they are looked up at its end.
Status check_names(const RuleSet& rules, std::string_view file_name) {
  for (const Rule& rule : rules.rules) {
    if (!rule.pattern.region.empty() && !rules.regions.contains(rule.pattern.region)) {
      return Error::bad_input(fmt::format("rule file {}: a rule names region \"{}\", which is not declared",
                                          file_name, rule.pattern.region));
    }
    if (!rule.stage.empty() && !rules.stages.contains(rule.stage)) {
      return Error::bad_input(fmt::format("rule file {}: a rule names stage \"{}\", which is not declared",
                                          file_name, rule.stage));
    }
  }
  return {};
}

/// A chain of files longer than this extends itself.
constexpr int kMaxFiles = 8;

}  // namespace

Result<std::shared_ptr<const RuleSet>> parse_rules(std::string_view json, std::string_view file_name,
                                                   const RuleFileReader& read_file) {
  auto rules = std::make_shared<RuleSet>();
  std::string text(json);
  std::string name(file_name);
  for (int depth = 0; depth < kMaxFiles; ++depth) {
    std::string base;
    try {
      base = Reader(name, *rules).read(Json::parse(text, nullptr, true, true));
    } catch (const BadRules& bad) {
      return Error::bad_input(bad.what());
    } catch (const Json::exception& bad) {
      return Error::bad_input(fmt::format("rule file {}: is not JSON: {}", name, bad.what()));
    }
    if (base.empty()) {
      if (const Status names = check_names(*rules, file_name); !names) return names.error();
      return std::shared_ptr<const RuleSet>(std::move(rules));
    }
    auto base_text = read_file(base);
    if (!base_text) return base_text.error();
    text = std::move(base_text).value();
    name = base + ".json";
  }
  return Error::bad_input(fmt::format("rule file {}: its \"extends\" never ends", file_name));
}

Result<std::shared_ptr<const RuleSet>> parse_rules(std::string_view json, std::string_view file_name) {
  return parse_rules(json, file_name, [&](const std::string& name) -> Result<std::string> {
    return Error::bad_input(
        fmt::format("rule file {}: extends \"{}\", which cannot be read here", file_name, name));
  });
}

}  // namespace opledger::core
