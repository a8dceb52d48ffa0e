#include "judge/pairs.h"

#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace opledger::judge {

namespace {

using nlohmann::json;

json header_of(const Question& question) {
  return {{"type", "header"},
          {"schema", "opledger-judge-pairs"},
          {"version", 1},
          {"question", to_json(question)}};
}

std::optional<Pair> pair_of(const json& line) {
  const auto number = [&](const char* key) {
    const auto found = line.find(key);
    return found != line.end() && found->is_number() ? found->get<double>() : 0.0;
  };
  const Pair pair{number("a"), number("b"), number("elapsed_s")};
  if (line.value("type", json()) != "pair" || !(pair.a > 0) || !(pair.b > 0)) return std::nullopt;
  return pair;
}

Error not_ours(const std::string& path, size_t number, const std::string& why) {
  return Error::bad_input(fmt::format("--record {}: line {}: {}: name another file", path, number, why));
}

Error cannot_write(const std::string& path) {
  return Error::environment(
      fmt::format("--record {}: cannot be written (or its disk is full): name another file", path));
}

Result<std::vector<Pair>> read_pairs(const std::string& path, const Question& question) {
  std::vector<Pair> pairs;
  std::ifstream file(path);
  size_t number = 0;
  for (std::string text; std::getline(file, text);) {
    const json line = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (++number == 1) {
      if (line != header_of(question)) return not_ours(path, number, "holds pairs of something else");
      continue;
    }
    // The last line of a run that was killed may be cut: what it told is lost, not what came before.
    if (line.is_discarded() && file.eof()) break;
    const std::optional<Pair> pair = line.is_object() ? pair_of(line) : std::nullopt;
    if (!pair) return not_ours(path, number, "is no pair of figures above 0");
    pairs.push_back(*pair);
  }
  if (number == 0) return not_ours(path, 1, "cannot be read");
  return pairs;
}

// Cut back to whole lines, so that the next one does not join what a killed run left.
Status end_last_line(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.empty() || text.back() == '\n') return {};
  std::error_code failed;
  const size_t end = text.rfind('\n');
  std::filesystem::resize_file(path, end == std::string::npos ? 0 : end + 1, failed);
  return failed ? Status(Error::environment(fmt::format("--record {}: {}", path, failed.message())))
                : Status();
}

}  // namespace

double Pair::log_ratio(bool is_higher_better) const {
  return is_higher_better ? std::log(b / a) : std::log(a / b);
}

Result<PairLog> PairLog::open(const std::optional<std::string>& path, const Question& question) {
  PairLog log(path);
  if (!path) return log;
  std::error_code ignored;
  const bool is_new = !std::filesystem::exists(*path) || std::filesystem::file_size(*path, ignored) == 0;
  if (!is_new) {
    Result<std::vector<Pair>> pairs = read_pairs(*path, question);
    if (!pairs) return pairs.error();
    log.pairs_ = std::move(*pairs);
    if (Status status = end_last_line(*path); !status) return status.error();
    if (!std::ofstream(*path, std::ios::app)) return cannot_write(*path);
    return log;
  }
  if (Status status = log.write_line(header_of(question).dump()); !status) return status.error();
  return log;
}

Status PairLog::append(const Pair& pair) {
  pairs_.push_back(pair);
  if (!path_) return {};
  const json line{{"type", "pair"}, {"a", pair.a}, {"b", pair.b}, {"elapsed_s", pair.elapsed_s}};
  return write_line(line.dump());
}

Status PairLog::write_line(const std::string& line) {
  std::ofstream file(*path_, std::ios::app);
  file << line << '\n';
  file.flush();
  return file ? Status() : Status(cannot_write(*path_));
}

}  // namespace opledger::judge
