#include "cli/judge_engines.h"

#include <optional>
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

/// What the samples say at the newest look that they reach.
judge::JudgeOutcome outcome_of(const std::vector<double>& logs, double min_effect_ratio) {
  const auto count = static_cast<int>(logs.size());
  judge::JudgeOutcome outcome;
  outcome.pairs = count;
  outcome.looks = core::looks_reached(count);
  if (const std::optional<int> last = core::last_look(count)) {
    outcome.judgement = judge::judge_pairs({logs.data(), static_cast<size_t>(*last)}, min_effect_ratio);
  }
  return outcome;
}

bool is_decided(const judge::JudgeOutcome& outcome) {
  return outcome.judgement.verdict != judge::Verdict::kCannotTell || !core::next_look(outcome.pairs);
}

const char* end_reason(const judge::JudgeOutcome& outcome, bool is_interrupted) {
  if (outcome.judgement.verdict != judge::Verdict::kCannotTell) return "verdict";
  if (is_interrupted) return "interrupted";
  return core::next_look(outcome.pairs) ? "budget" : "looks";
}

}  // namespace

Result<judge::JudgeOutcome> judge_engines(BenchFlags& parsed, const std::vector<std::string>& arguments,
                                          double min_effect_ratio, session::Progress& progress) {
  if (parsed.flags.count("p") == 0) parsed.flags.emplace("n", "16");
  Result<session::CompareOptions> options = compare_options_of(parsed, "judge", arguments);
  if (!options) return options.error();
  const auto& workloads = options->workloads;
  if (workloads.prefill_tokens.size() + workloads.decode_tokens.size() * workloads.depth_tokens.size() != 1)
    return Error::bad_input("judge: give one workload: one -p, or one -n and one -d");
  options->totals_only = true;
  options->max_groups = core::kLooks.back();
  options->is_enough = [&](const std::string& text) {
    const Result<std::vector<double>> logs = log_ratios(text);
    return logs && is_decided(outcome_of(*logs, min_effect_ratio));
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
  judge::JudgeOutcome outcome = outcome_of(*logs, min_effect_ratio);
  outcome.elapsed_s = static_cast<double>(clock.now_ns() - started_ns) * 1e-9;
  outcome.end_reason = end_reason(outcome, is_interrupted);
  return outcome;
}

}  // namespace opledger::cli
