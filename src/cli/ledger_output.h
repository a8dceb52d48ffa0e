// The last step of `compare`, `report` and `regress`: a record in, what it says out, on stdout and as JSON,
// and the exit code that it deserves.
#pragma once

#include <functional>
#include <string>

#include "core/base/result.h"
#include "core/ledger/analyse.h"
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

/// Category rules of the record's engines. Bad input: a family without a rule file.
Result<core::RulesByFamily> rules_of_record(const core::Record& record);

/// What is to be printed, in a format.
using Rendering = std::function<std::string(report::Format, const report::RenderOptions&)>;

/// Prints as `output` asks, to stdout and as JSON to a file. Environment: stdout does not take it.
Status print_rendering(const Rendering& rendering, const LedgerOutput& output);

/// The ledger of a record as plain text for a terminal. Errors as analyse() gives them.
Result<std::string> ledger_text(const core::Record& record);

/// Analyses and prints. The exit code: 0, or 4 when a check did not hold or a verdict is "cannot tell".
/// Errors as analyse() gives them; environment when stdout does not take it.
Result<int> print_ledger(const core::Record& record, const LedgerOutput& output);

}  // namespace opledger::cli
