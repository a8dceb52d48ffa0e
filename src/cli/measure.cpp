#include "cli/measure.h"

#include <fmt/format.h>
#include <unistd.h>

#include "core/record/read.h"
#include "platform/clock.h"
#include "platform/interrupt.h"
#include "session/progress.h"

namespace opledger::cli {

Result<int> measure_and_print(const session::CompareOptions& options, const PrintRecord& print) {
  const platform::SteadyClock clock;
  const platform::Interrupt interrupt;
  session::Progress progress(::isatty(STDERR_FILENO) == 1, clock);
  Result<session::CompareOutcome> outcome = session::run_compare(options, clock, interrupt, progress);
  if (!outcome) return outcome.error();
  const Result<core::Record> record = core::parse_record(outcome->record_text, "this session's record");
  Result<int> printed = record ? print(*record) : Result<int>(record.error());
  if (!outcome->error) return printed;
  Error error = *outcome->error;
  if (outcome->record_path) error.message += fmt::format("; the record so far is {}", *outcome->record_path);
  return error;
}

}  // namespace opledger::cli
