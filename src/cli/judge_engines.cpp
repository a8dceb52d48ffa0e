#include "cli/judge_engines.h"

#include <vector>

#include "cli/compare_options.h"
#include "core/ledger/analyse.h"
#include "core/record/read.h"
#include "core/stats/looks.h"
#include "platform/clock.h"
#include "platform/interrupt.h"

namespace opledger::cli {
namespace {

Result<std::vector<double>> log_ratios(const std::string& record_text) {
  const Result<core::Record> record = core::parse_record(record_text, "this session's record");
  if (!record) return record.error();
  if (record->workloads.empty()) return std::vector<double>{};
  return core::launch_log_ratios(*record, record->workloads.front());
}

}  // namespace

Result<judge::JudgeOutcome> judge_engines(BenchFlags& parsed, const std::vector<std::string>& arguments,
                                          double min_effect_ratio, session::Progress& progress) {
  Result<session::CompareOptions> options = one_workload_options_of(parsed, "judge", arguments);
  if (!options) return options.error();
  options->totals_only = true;
  options->max_groups = core::kLooks.back();
  options->is_enough = [&](const std::string& text) {
    const Result<std::vector<double>> logs = log_ratios(text);
    return logs && !judge::outcome_of(*logs, min_effect_ratio).end_reason.empty();
  };
  const platform::SteadyClock clock;
  const platform::Interrupt interrupt;
  const int64_t started_ns = clock.now_ns();
  Result<session::CompareOutcome> session = session::run_compare(*options, clock, interrupt, progress);
  if (!session) return session.error();
  const bool is_interrupted = session->error && session->error->kind == Error::Kind::kInterrupted;
  if (session->error && !is_interrupted) return *session->error;
  const Result<std::vector<double>> logs = log_ratios(session->record_text);
  if (!logs) return logs.error();
  judge::JudgeOutcome outcome = judge::outcome_of(*logs, min_effect_ratio);
  outcome.elapsed_s = static_cast<double>(clock.now_ns() - started_ns) * 1e-9;
  if (outcome.end_reason.empty()) outcome.end_reason = is_interrupted ? "interrupted" : "budget";
  return outcome;
}

}  // namespace opledger::cli
