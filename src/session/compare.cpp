// What is checked before an engine may start, and what is kept when something fails afterwards.
#include "session/compare.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "core/record/write.h"
#include "platform/machine.h"
#include "platform/machine_lock.h"
#include "platform/record_file.h"
#include "session/compare_session.h"

namespace opledger::session {
namespace {

/// A generous guess at a record's size: most of it is one integer per unit and stamped pass.
int64_t estimated_record_bytes(double budget_s) {
  return (int64_t{8} << 20) + static_cast<int64_t>(budget_s * 250e3);
}

const char* rows_name(core::RowKind rows) {
  switch (rows) {
    case core::RowKind::kRole:
      return "role";
    case core::RowKind::kLayer:
      return "layer";
    case core::RowKind::kOp:
      return "op";
    default:
      return "category";
  }
}

core::Header header_of(const CompareOptions& options, const core::MachineFacts& machine) {
  core::Header header;
  header.opledger_version = options.version;
  header.command = options.command;
  header.started = platform::rfc3339_now();
  header.seed = options.seed;
  header.machine = machine;
  header.budget_s = options.budget_s;
  header.precision_ratio = options.precision_ratio;
  header.rows = rows_name(options.rows);
  return header;
}

Result<RecordLog> open_log(const CompareOptions& options) {
  if (!options.record_path) return RecordLog(std::nullopt);
  if (Status room = platform::check_room(*options.record_path, estimated_record_bytes(options.budget_s));
      !room) {
    return room.error();
  }
  Result<platform::RecordWriter> file = platform::RecordWriter::open(*options.record_path);
  if (!file) return file.error();
  return RecordLog(std::move(*file));
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// Event and end lines of a session that did not reach its end by itself. Their own failure changes nothing.
std::string close_failed(RecordLog& log, const Error& error) {
  const bool is_interrupted = error.kind == Error::Kind::kInterrupted;
  core::Event event;
  event.kind = is_interrupted ? "interrupted" : "engine_died";
  if (error.kind == Error::Kind::kBadInput || error.kind == Error::Kind::kEnvironment) event.kind = "note";
  event.text = error.message;
  std::string reason = is_interrupted ? "interrupted" : "failed";
  if (log.append(core::record_line(event))) static_cast<void>(log.append(core::end_line(reason)).is_ok());
  return reason;
}

/// Values of a wrong type deep inside a reply come out of the JSON library as exceptions.
Result<std::string> run_guarded(CompareSession& session) {
  try {
    return session.run();
  } catch (const nlohmann::json::exception& error) {
    return Error::failure(fmt::format(
        "a reply of an engine does not have the protocol's form: {}; run `opledger engine check NAME`",
        error.what()));
  }
}

}  // namespace

Result<CompareOutcome> run_compare(const CompareOptions& options, const platform::Clock& clock,
                                   const platform::Interrupt& interrupt, Progress& progress) {
  if (!(options.budget_s >= 1))
    return Error::bad_input("--budget: give a time of 1 s or more, such as 60s or 3m");
  Result<int64_t> needed = needed_tokens(options.workloads);
  if (!needed) return needed.error();
  const core::MachineFacts machine = platform::machine_facts();
  Result<Side> a = resolve_side(core::Side::kA, options.spec_a, options.flags, machine.cores);
  if (!a) return a.error();
  Result<Side> b = resolve_side(core::Side::kB, options.spec_b, options.flags, machine.cores);
  if (!b) return b.error();
  b->fault = options.fault;
  Result<platform::MachineLock> lock =
      platform::MachineLock::acquire(options.lock_path, joined(options.command));
  if (!lock) return lock.error();
  Result<RecordLog> log = open_log(options);
  if (!log) return log.error();
  if (Status status = log->append(core::record_line(header_of(options, machine))); !status)
    return status.error();
  if (log->path() != options.record_path)
    progress.say(
        fmt::format("{} is kept until the first block is measured: this session's record is {} till then",
                    *options.record_path, *log->path()));

  CompareOutcome outcome;
  std::array<Side, 2> sides{std::move(*a), std::move(*b)};
  {
    CompareSession session(options, clock, interrupt, progress, *log, std::move(sides), *needed);
    Result<std::string> end = run_guarded(session);
    progress.clear();
    if (end) {
      outcome.end_reason = *end;
      if (Status status = log->append(core::end_line(*end)); !status) outcome.error = status.error();
      if (Status status = log->settle(); !status) outcome.error = status.error();
    } else {
      outcome.error = end.error();
      outcome.end_reason = close_failed(*log, end.error());
    }
  }
  outcome.record_text = log->text();
  outcome.record_path = log->path();
  return outcome;
}

}  // namespace opledger::session
