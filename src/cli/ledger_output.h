// The last step of `compare` and `report`: a record in, the ledger out, on stdout and as JSON, and the
// exit code that it deserves.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/ledger/ledger.h"
#include "core/record/record.h"
#include "report/report.h"

namespace opledger::cli {

struct LedgerOutput {
  report::Format format = report::Format::kTerminal;
  std::string json_path;  ///< empty: none; "-": JSON on stdout, and nothing else there
};

/// Fails (bad input) where the JSON file could not be written: to be asked before anything is measured.
Status check_output(const LedgerOutput& output);

/// The ledger of a record, by the category rules of its engines' families. Errors as analyse() gives them.
Result<core::Ledger> ledger_of(const core::Record& record);

/// The same as plain text for a terminal. Errors as analyse() gives them.
Result<std::string> ledger_text(const core::Record& record);

/// Analyses and prints. The exit code: 0, or 4 when a check did not hold or a verdict is "cannot tell".
/// Errors as analyse() gives them; environment when stdout does not take it.
Result<int> print_ledger(const core::Record& record, const LedgerOutput& output);

}  // namespace opledger::cli
