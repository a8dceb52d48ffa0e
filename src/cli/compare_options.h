// From the words and options of a command line to what a measurement of two engines needs. `compare` and
// `judge` understand the same.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cli/bench_flags.h"
#include "core/base/result.h"
#include "session/compare.h"

namespace opledger::cli {

/// The long options that compare_options_of reads.
inline const std::set<std::string> kCompareOptions{"prompt-file", "rows", "budget",
                                                   "record",      "seed", "engine-timeout"};

/// Bad input names the flag. `command` is the subcommand and `arguments` are its own, for messages, the lock
/// and the record; workload flags are taken out of `parsed`.
Result<session::CompareOptions> compare_options_of(BenchFlags& parsed, const std::string& command,
                                                   const std::vector<std::string>& arguments);

/// The same for a command that takes one workload: decode of 16 tokens at depth 64 unless told. Bad input
/// where more are asked for.
Result<session::CompareOptions> one_workload_options_of(BenchFlags& parsed, const std::string& command,
                                                        const std::vector<std::string>& arguments);

}  // namespace opledger::cli
