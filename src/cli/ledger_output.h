// The last step of `compare` and `report`: a record's text in, the ledger out, on stdout and as JSON, and the
// exit code that it deserves.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "report/report.h"

namespace opledger::cli {

struct LedgerOutput {
  report::Format format = report::Format::kTerminal;
  std::string json_path;  ///< empty: none; "-": JSON on stdout, and nothing else there
};

/// Fails (bad input) where the JSON file could not be written: to be asked before anything is measured.
Status check_output(const LedgerOutput& output);

/// Analyses and prints. `record_name` is for messages. The exit code: 0, or 4 when a check did not hold or a
/// verdict is "cannot tell". Errors as analyse() and parse_record() give them.
Result<int> print_ledger(std::string_view record_text, std::string_view record_name,
                         const LedgerOutput& output);

}  // namespace opledger::cli
