// Command lines in llama-bench's manner: `-fa 1 -ub 512 -m model.gguf` beside our own `--budget 60s`. CLI11
// takes
// `-fa` for `-f -a`, so commands that pass engine flags through read their words here instead.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "session/compare.h"

namespace opledger::cli {

struct BenchFlags {
  std::vector<std::string> words;              ///< what is no flag and no flag's value
  std::map<std::string, std::string> options;  ///< `--name value` or `--name=value`, without dashes
  std::map<std::string, std::string> flags;    ///< `-name value`, without the dash
};

/// Bad input: a flag without a value or given twice, a `--name` that is not among `known_options`. `switches`
/// are options without a value, which stand in `options` as "on".
Result<BenchFlags> parse_bench_flags(const std::vector<std::string>& arguments,
                                     const std::set<std::string>& known_options,
                                     const std::set<std::string>& switches = {});

/// "512" or "512,2048". Bad input naming the flag otherwise.
Result<std::vector<int>> parse_counts(const std::string& flag, const std::string& text);

/// "90", "90s", "2m", "500ms" in seconds. Bad input naming the flag otherwise.
Result<double> parse_duration_s(const std::string& flag, const std::string& text);

/// "0.5%" or "0.005", from 0 to 0.5. Bad input naming the flag otherwise.
Result<double> parse_share(const std::string& flag, const std::string& text);

/// Takes -p, -n and -d out of `flags`; with neither -p nor -n it is pp512 and tg16@64.
Result<session::WorkloadRequest> take_workloads(std::map<std::string, std::string>& flags);

/// Category rules by family, from the rule files of this installation.
Result<std::shared_ptr<const core::RuleSet>> rules_of_family(const std::string& family);

/// Writes `text` to a file, or to stdout for "-". Bad input when it cannot be written.
Status write_output(const std::string& flag, const std::string& path, const std::string& text);

}  // namespace opledger::cli
