// Measuring two engines, as the commands do that print something of the whole record afterwards.
#pragma once

#include <functional>

#include "core/base/result.h"
#include "core/record/record.h"
#include "session/compare.h"

namespace opledger::cli {

/// Prints what a record says; gives the exit code.
using PrintRecord = std::function<Result<int>(const core::Record&)>;

/// Measures with progress on stderr and an interrupt that keeps what is there, then prints: also of a session
/// that failed, whose Error is returned, with where its record lies. Errors as run_compare() and `print` give
/// them.
Result<int> measure_and_print(const session::CompareOptions& options, const PrintRecord& print);

}  // namespace opledger::cli
