// A spec is cut at its first '@', its flags at commas outside quotes.
#include "session/engine_spec.h"

#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <utility>

namespace opledger::session {
namespace {

Error bad_spec(std::string_view text, std::string_view what) {
  return Error::bad_input(fmt::format(
      "engine \"{}\": {}; write NAME, or NAME@flag=value,flag=\"quoted, value\" with llama-bench's flags",
      text, what));
}

/// One `flag=value` from the front of `rest`, which is moved past it and its comma.
Result<std::pair<std::string, std::string>> take_flag(std::string_view text, std::string_view& rest) {
  const size_t equals = rest.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return bad_spec(text, fmt::format("\"{}\" is no flag=value", rest));
  }
  std::string name(rest.substr(0, equals));
  if (name.find_first_of(",\"@ ") != std::string::npos)
    return bad_spec(text, fmt::format("\"{}\" is no flag", name));
  while (!name.empty() && name.front() == '-') name.erase(0, 1);
  if (name.empty()) return bad_spec(text, "a flag has no name");
  rest.remove_prefix(equals + 1);
  std::string value;
  if (!rest.empty() && rest.front() == '"') {
    const size_t close = rest.find('"', 1);
    if (close == std::string_view::npos)
      return bad_spec(text, fmt::format("the value of {} has no closing quote", name));
    value = rest.substr(1, close - 1);
    rest.remove_prefix(close + 1);
    if (!rest.empty() && rest.front() != ',') {
      return bad_spec(text, fmt::format("a comma must follow the quoted value of {}", name));
    }
  } else {
    value = rest.substr(0, rest.find(','));
    rest.remove_prefix(value.size());
  }
  if (value.empty()) return bad_spec(text, fmt::format("{} has no value", name));
  if (!rest.empty()) {
    rest.remove_prefix(1);
    if (rest.empty()) return bad_spec(text, "nothing follows the last comma");
  }
  return std::pair{std::move(name), std::move(value)};
}

Result<int> positive_number(const EngineSpec& spec, const std::string& name, const std::string& value) {
  int number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size() || number < 1) {
    return Error::bad_input(
        fmt::format("engine \"{}\": -{} {}: give a whole number from 1 up", spec.text, name, value));
  }
  return number;
}

Status take_number(const EngineSpec& spec, const std::string& name, std::map<std::string, std::string>& flags,
                   int& number) {
  const auto given = flags.find(name);
  if (given == flags.end()) return {};
  const Result<int> parsed = positive_number(spec, name, given->second);
  if (!parsed) return parsed.error();
  number = *parsed;
  flags.erase(given);
  return {};
}

}  // namespace

Result<EngineSpec> parse_engine_spec(std::string_view text) {
  EngineSpec spec;
  spec.text = text;
  const size_t at = text.find('@');
  spec.name = text.substr(0, at);
  constexpr std::string_view kExec = "exec:";
  if (spec.name.rfind(kExec, 0) == 0) {
    spec.program = spec.name.substr(kExec.size());
    spec.name = std::filesystem::path(spec.program).filename().string();
  }
  if (spec.name.empty()) return bad_spec(text, "it has no name");
  if (at == std::string_view::npos) return spec;
  std::string_view rest = text.substr(at + 1);
  if (rest.empty()) return bad_spec(text, "nothing follows the @");
  while (!rest.empty()) {
    Result<std::pair<std::string, std::string>> flag = take_flag(text, rest);
    if (!flag) return flag.error();
    if (flag->first == "m") {
      if (spec.model_path) return bad_spec(text, "m is given twice");
      spec.model_path = flag->second;
    } else if (!spec.flags.insert(*flag).second) {
      return bad_spec(text, fmt::format("{} is given twice", flag->first));
    }
  }
  return spec;
}

Result<LoadSettings> load_settings(const EngineSpec& spec, const std::map<std::string, std::string>& common,
                                   int cores) {
  LoadSettings settings;
  settings.flags = common;
  for (const auto& [name, value] : spec.flags) settings.flags[name] = value;
  settings.threads = cores;
  if (Status status = take_number(spec, "t", settings.flags, settings.threads); !status)
    return status.error();
  if (Status status = take_number(spec, "b", settings.flags, settings.batch_tokens); !status)
    return status.error();
  if (Status status = take_number(spec, "ub", settings.flags, settings.ubatch_tokens); !status) {
    return status.error();
  }
  if (settings.threads > cores) {
    return Error::bad_input(
        fmt::format("-t {}: this process may use {} core{}; more threads than cores measure the "
                    "scheduler, so give at most -t {}",
                    settings.threads, cores, cores == 1 ? "" : "s", cores));
  }
  if (spec.model_path) {
    settings.model_path = *spec.model_path;
  } else if (const auto model = settings.flags.find("m"); model != settings.flags.end()) {
    settings.model_path = model->second;
  }
  settings.flags.erase("m");
  if (settings.model_path.empty()) {
    return Error::bad_input(
        fmt::format("engine \"{}\" has no model: give -m FILE, or {}@m=FILE", spec.text, spec.name));
  }
  return settings;
}

}  // namespace opledger::session
