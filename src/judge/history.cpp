#include "judge/history.h"

#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

namespace opledger::judge {

namespace {

using nlohmann::json;

Error cannot_keep(const std::string& path) {
  return Error::environment(fmt::format("--history {}: cannot be written: name another file", path));
}

History counted(const std::vector<Verdict>& verdicts) {
  History history;
  bool is_open = false;  // the newest told verdict was `faster`
  for (const Verdict verdict : verdicts) {
    ++history.verdicts;
    if (verdict == Verdict::kCannotTell) continue;
    if (is_open) ++(verdict == Verdict::kFaster ? history.confirmed : history.refuted);
    is_open = verdict == Verdict::kFaster;
    if (is_open) ++history.faster;
  }
  return history;
}

}  // namespace

Result<History> read_history(const std::string& path, const Question& question) {
  std::vector<Verdict> verdicts;
  std::ifstream file(path);
  size_t number = 0;
  for (std::string text; std::getline(file, text);) {
    ++number;
    const json line = json::parse(text, nullptr, /*allow_exceptions=*/false);
    const bool is_object = line.is_object() && line.contains("question") && line.contains("verdict");
    const std::optional<Verdict> verdict =
        is_object && line["verdict"].is_string() ? core::verdict_named(line["verdict"]) : std::nullopt;
    if (!verdict) {
      return Error::bad_input(
          fmt::format("--history {}: line {} is no verdict: name another file", path, number));
    }
    if (line["question"] == to_json(question)) verdicts.push_back(*verdict);
  }
  return counted(verdicts);
}

Status check_history(const std::string& path) {
  return std::ofstream(path, std::ios::app) ? Status() : Status(cannot_keep(path));
}

Status add_to_history(const std::string& path, const Question& question, const JudgeOutcome& outcome,
                      const std::string& when) {
  const json line{{"question", to_json(question)},
                  {"verdict", core::verdict_name(outcome.judgement.verdict)},
                  {"ratio", outcome.judgement.ratio},
                  {"pairs", outcome.pairs},
                  {"when", when}};
  std::ofstream file(path, std::ios::app);
  file << line.dump() << '\n';
  file.flush();
  return file ? Status() : Status(cannot_keep(path));
}

}  // namespace opledger::judge
