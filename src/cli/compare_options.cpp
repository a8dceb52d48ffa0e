#include "cli/compare_options.h"

#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <vector>

#include "platform/machine_lock.h"
#include "session/registry.h"

namespace opledger::cli {
namespace {

Result<core::RowKind> rows_of(const std::string& text) {
  if (text.empty() || text == "category") return core::RowKind::kCategory;
  if (text == "role") return core::RowKind::kRole;
  if (text == "layer") return core::RowKind::kLayer;
  if (text == "op") return core::RowKind::kOp;
  return Error::bad_input(fmt::format("--rows {}: give category, role, layer or op", text));
}

Result<uint64_t> seed_of(const std::string& text) {
  uint64_t seed = 1;
  if (text.empty()) return seed;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return Error::bad_input(fmt::format("--seed {}: give a whole number from 0 up", text));
  }
  return seed;
}

Status fill_times(std::map<std::string, std::string>& options, session::CompareOptions& compare) {
  if (const std::string& text = options["budget"]; !text.empty()) {
    Result<double> seconds = parse_duration_s("--budget", text);
    if (!seconds) return seconds.error();
    compare.budget_s = *seconds;
  }
  if (const std::string& text = options["engine-timeout"]; !text.empty()) {
    Result<double> seconds = parse_duration_s("--engine-timeout", text);
    if (!seconds) return seconds.error();
    compare.engine_limit_ns = static_cast<int64_t>(*seconds * 1e9);
  }
  return {};
}

}  // namespace

Result<session::CompareOptions> compare_options_of(BenchFlags& parsed, const std::string& command,
                                                   const std::vector<std::string>& arguments) {
  if (parsed.words.size() != 2) {
    return Error::bad_input(fmt::format("{}: {} engine{} given, two are needed (see `opledger {} --help`)",
                                        command, parsed.words.size(),
                                        parsed.words.size() == 1 ? " is" : "s are", command));
  }
  session::CompareOptions compare;
  compare.spec_a = parsed.words[0];
  compare.spec_b = parsed.words[1];
  Result<core::RowKind> rows = rows_of(parsed.options["rows"]);
  if (!rows) return rows.error();
  compare.rows = *rows;
  Result<uint64_t> seed = seed_of(parsed.options["seed"]);
  if (!seed) return seed.error();
  compare.seed = *seed;
  if (Status status = fill_times(parsed.options, compare); !status) return status.error();
  Result<session::WorkloadRequest> workloads = take_workloads(parsed.flags);
  if (!workloads) return workloads.error();
  compare.workloads = *workloads;
  compare.flags = parsed.flags;
  if (const std::string& path = parsed.options["prompt-file"]; !path.empty()) compare.prompt_path = path;
  if (const std::string& path = parsed.options["record"]; !path.empty()) compare.record_path = path;
  Result<std::filesystem::path> cache = session::cache_folder();
  if (!cache) return cache.error();
  compare.log_folder = (*cache / "logs").string();
  compare.lock_path = platform::MachineLock::default_path();
  compare.version = OPLEDGER_VERSION;
  compare.command = {"opledger", command};
  compare.command.insert(compare.command.end(), arguments.begin(), arguments.end());
  compare.rules_of = rules_of_family;
  return compare;
}

Result<session::CompareOptions> one_workload_options_of(BenchFlags& parsed, const std::string& command,
                                                        const std::vector<std::string>& arguments) {
  if (parsed.flags.count("p") == 0) parsed.flags.emplace("n", "16");
  Result<session::CompareOptions> options = compare_options_of(parsed, command, arguments);
  if (!options) return options.error();
  const session::WorkloadRequest& asked = options->workloads;
  if (asked.prefill_tokens.size() + asked.decode_tokens.size() * asked.depth_tokens.size() != 1)
    return Error::bad_input(command + ": give one workload: one -p, or one -n and one -d");
  return options;
}

}  // namespace opledger::cli
