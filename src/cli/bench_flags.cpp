// Words to maps; every message names the flag.
#include "cli/bench_flags.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

namespace opledger::cli {
namespace {

Result<std::string> text_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return Error::environment(fmt::format("{}: cannot be read; is this installation complete?", path));
  return std::string{std::istreambuf_iterator<char>(file), {}};
}

std::string rules_folder() {
  return std::string(OPLEDGER_SOURCE_DIR) + "/schema/rules";
}

/// "-5" and "-" are values, "-fa" is a flag.
bool is_flag(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && !(word[1] >= '0' && word[1] <= '9') && word[1] != '.';
}

}  // namespace

Result<BenchFlags> parse_bench_flags(const std::vector<std::string>& arguments,
                                     const std::set<std::string>& known_options,
                                     const std::set<std::string>& switches) {
  BenchFlags parsed;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (!is_flag(word)) {
      parsed.words.push_back(word);
      continue;
    }
    const bool is_long = word.rfind("--", 0) == 0;
    const size_t equals = is_long ? word.find('=') : std::string::npos;
    std::string name = word.substr(is_long ? 2 : 1, equals == std::string::npos ? equals : equals - 2);
    std::string value;
    const bool is_switch = is_long && switches.count(word.substr(2)) > 0;
    if (is_long && !is_switch && known_options.count(name) == 0) {
      return Error::bad_input(fmt::format("--{}: there is no such option (see --help)", name));
    }
    if (is_switch) {
      value = "on";
    } else if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else if (i + 1 < arguments.size() && !is_flag(arguments[i + 1])) {
      value = arguments[++i];
    }
    if (value.empty())
      return Error::bad_input(fmt::format("{}: a value must follow", word.substr(0, equals)));
    auto& place = is_long ? parsed.options : parsed.flags;
    if (!place.emplace(std::move(name), std::move(value)).second) {
      return Error::bad_input(fmt::format("{} is given twice", word.substr(0, equals)));
    }
  }
  return parsed;
}

Result<std::vector<int>> parse_counts(const std::string& flag, const std::string& text) {
  std::vector<int> counts;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    int count = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), count);
    if (part.empty() || error != std::errc{} || end != part.data() + part.size() || count < 0) {
      return Error::bad_input(
          fmt::format("{} {}: give numbers of tokens from 0 up, such as 512 or 128,512", flag, text));
    }
    counts.push_back(count);
  }
  return counts;
}

Result<double> parse_duration_s(const std::string& flag, const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string unit(end, text.data() + text.size());
  const double scale = unit.empty() || unit == "s"    ? 1.0
                       : unit == "ms"                 ? 1e-3
                       : unit == "m" || unit == "min" ? 60.0
                                                      : 0;
  if (error != std::errc{} || scale == 0 || !(number > 0) || number * scale > 1e6) {
    return Error::bad_input(fmt::format("{} {}: give a time such as 60s or 3m", flag, text));
  }
  return number * scale;
}

Result<double> parse_share(const std::string& flag, const std::string& text) {
  const bool is_percent = !text.empty() && text.back() == '%';
  const std::string digits = is_percent ? text.substr(0, text.size() - 1) : text;
  char* end = nullptr;
  const double number = std::strtod(digits.c_str(), &end) / (is_percent ? 100 : 1);
  if (digits.empty() || *end != '\0' || !(number >= 0) || number > 0.5) {
    return Error::bad_input(
        fmt::format("{} {}: give a share from 0 to 50%, such as 0.5% or 0.005", flag, text));
  }
  return number;
}

Result<session::WorkloadRequest> take_workloads(std::map<std::string, std::string>& flags) {
  session::WorkloadRequest request;
  const bool is_default = flags.count("p") == 0 && flags.count("n") == 0;
  request.depth_tokens = {64};
  if (is_default) {
    request.prefill_tokens = {512};
    request.decode_tokens = {16};
  }
  for (const auto& [name, counts] :
       {std::pair{"p", &request.prefill_tokens}, std::pair{"n", &request.decode_tokens},
        std::pair{"d", &request.depth_tokens}}) {
    const auto given = flags.find(name);
    if (given == flags.end()) continue;
    Result<std::vector<int>> parsed = parse_counts(std::string("-") + name, given->second);
    if (!parsed) return parsed.error();
    *counts = std::move(*parsed);
    flags.erase(given);
  }
  return request;
}

Result<std::shared_ptr<const core::RuleSet>> rules_of_family(const std::string& family) {
  if (family.empty() || family.find('/') != std::string::npos) {
    return Error::failure(fmt::format("an engine calls its family \"{}\", which names no rule file", family));
  }
  const std::string path = rules_folder() + "/" + family + ".json";
  if (!std::filesystem::exists(path)) {
    return Error::bad_input(
        fmt::format("{}: no category rules for engines of the family \"{}\"; write that file", path, family));
  }
  Result<std::string> text = text_of_file(path);
  if (!text) return text.error();
  return core::parse_rules(*text, path, [](const std::string& name) {
    return text_of_file(rules_folder() + "/" + name + ".json");
  });
}

Status write_output(const std::string& flag, const std::string& path, const std::string& text) {
  if (path == "-") {
    fmt::print("{}\n", text);
    return {};
  }
  std::ofstream file(path, std::ios::binary);
  file << text << '\n';
  file.flush();
  if (!file) return Error::bad_input(fmt::format("{} {}: cannot be written; give another path", flag, path));
  return {};
}

}  // namespace opledger::cli
