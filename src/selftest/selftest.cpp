#include "selftest/selftest.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/ledger/analyse.h"
#include "core/record/read.h"
#include "core/scopes/scopes.h"

namespace opledger::selftest {

namespace {

using session::CompareOptions;

/// The first round holds no replays; three turns are the fewest that a check of the clocks takes.
constexpr int kRoundsWithReplays = 4;
/// Sessions of fixed groups and rounds end by those.
constexpr double kNoBudgetS = 3600;

constexpr double kMediumRatio = 0.2;
constexpr double kSmallRatio = 1.0 / 30;

struct Session {
  core::Record record;
  core::RulesByFamily rules;
  core::Ledger ledger;
  std::optional<Error> error;  ///< an engine's failure; what was measured before is there

  [[nodiscard]] const core::WorkloadLedger& workload() const { return ledger.workloads.front(); }
};

double share_of(const core::Row& row, const core::WorkloadLedger& ledger) {
  return row.stamp_a.ms.value_or(0) / std::max(ledger.a.graph.ms.value_or(0), 1e-9);
}

class Selftest {
 public:
  Selftest(const Options& options, const platform::Clock& clock, const platform::Interrupt& interrupt,
           session::Progress& progress)
      : options_(options), clock_(clock), interrupt_(interrupt), progress_(progress) {}

  Result<Report> run() {
    const int64_t started_ns = clock_.now_ns();
    if (Status status = look(); !status) return status.error();
    for (const Fault& fault : options_.faults) {
      if (Status status = plant_fault(fault); !status) return status.error();
    }
    for (const std::string& row : rows_) {
      if (Status status = plant_work(row); !status) return status.error();
    }
    report_.elapsed_s = static_cast<double>(clock_.now_ns() - started_ns) * 1e-9;
    return std::move(report_);
  }

 private:
  [[nodiscard]] CompareOptions short_session(int rounds) const {
    CompareOptions options = options_.compare;
    options.has_fixed_groups = true;
    options.max_groups = 1;
    options.max_rounds = rounds;
    options.budget_s = kNoBudgetS;
    options.replayed_rows = std::set<std::string>{};
    return options;
  }

  /// An Error for what was asked wrongly, interrupted or lacks something, and for records without a ledger.
  Result<Session> measure(const CompareOptions& options) {
    Result<session::CompareOutcome> outcome = session::run_compare(options, clock_, interrupt_, progress_);
    if (!outcome) return outcome.error();
    if (outcome->error && outcome->error->kind != Error::Kind::kFailure) return *outcome->error;
    Session session;
    session.error = outcome->error;
    Result<core::Record> record = core::parse_record(outcome->record_text, "this session's record");
    if (!record) return record.error();
    session.record = std::move(*record);
    for (const core::EngineFacts& engine : session.record.engines) {
      Result<std::shared_ptr<const core::RuleSet>> rules = options.rules_of(engine.family);
      if (!rules) return rules.error();
      session.rules[engine.family] = *rules;
    }
    Result<core::Ledger> ledger = core::analyse(session.record, session.rules);
    const bool has_ledger = ledger && !ledger->workloads.empty();
    if (!has_ledger) return session.error ? *session.error : no_ledger(ledger);
    session.ledger = std::move(*ledger);
    return session;
  }

  static Error no_ledger(const Result<core::Ledger>& ledger) {
    return ledger ? Error::failure("the session measured no workload") : ledger.error();
  }

  /// Nothing is planted: what the pass is made of, and whether the checks are quiet.
  Status look() {
    progress_.say("nothing planted: what the pass is made of");
    Result<Session> session = measure(short_session(2));
    if (!session) return session.error();
    if (session->error) return *session->error;
    const core::WorkloadLedger& ledger = session->workload();
    if (!ledger.a.graph.ms || ledger.rows.empty()) return Error::failure("the pass could not be timed");
    report_.workload = ledger.name;
    report_.pass_ms = *ledger.a.graph.ms;
    std::set<std::string> names;
    for (const Fault& fault : known_faults()) names.insert(fault.checks.begin(), fault.checks.end());
    for (const core::Side side : {core::Side::kA, core::Side::kB}) {
      const auto alarm = fired_check(ledger, side, {names.begin(), names.end()});
      if (alarm) report_.false_alarms.push_back(fmt::format("{}: {}", alarm->name, alarm->text));
    }
    clean_ = std::move(*session);
    return choose_rows();
  }

  Status choose_rows() {
    const core::WorkloadLedger& ledger = clean_.workload();
    largest_row_ = default_rows(ledger).front();
    rows_ = options_.rows.value_or(default_rows(ledger));
    for (const std::string& row : rows_) {
      std::vector<std::string> known;
      for (const core::Row& one : ledger.rows) known.push_back(one.scope);
      if (std::find(known.begin(), known.end(), row) == known.end())
        return Error::bad_input(
            fmt::format("--row {}: {} has no such row; it has {}", row, ledger.name, fmt::join(known, ", ")));
    }
    return {};
  }

  [[nodiscard]] bool is_offered(const std::string& fault) const {
    const auto initialize = nlohmann::json::parse(clean_.record.engine(core::Side::kB)->initialize_json);
    const auto offered =
        initialize.value("capabilities", nlohmann::json::object()).value("faults", nlohmann::json::array());
    return std::find(offered.begin(), offered.end(), fault) != offered.end();
  }

  Status plant_fault(const Fault& fault) {
    progress_.say(fmt::format("planting {}", fault.title));
    FaultVerdict verdict;
    if (fault.name == "unsorted_node") {
      Result<FaultVerdict> judged = break_rules(fault);
      if (!judged) return judged.error();
      verdict = std::move(*judged);
    } else if (!is_offered(fault.name)) {
      verdict = {fault.name, fault.title, FaultVerdict::Outcome::kNotRun, "",
                 "the engine cannot plant it (its capabilities.faults)"};
    } else {
      Result<FaultVerdict> judged = measure_fault(fault);
      if (!judged) return judged.error();
      verdict = std::move(*judged);
    }
    report_.faults.push_back(std::move(verdict));
    return {};
  }

  /// The rules of one category are left out: the clean session's record is read again with what is left.
  Result<FaultVerdict> break_rules(const Fault& fault) const {
    const core::WorkloadGraph& graph = clean_.record.graphs.front().graph;
    const core::RuleSet& rules = *clean_.rules.begin()->second;
    const std::vector<std::string> all = core::categories_of(rules, graph.graphs.front());
    for (const std::string& category : std::set<std::string>(all.begin(), all.end())) {
      const std::shared_ptr<const core::RuleSet> broken = core::without_category(rules, category);
      const std::vector<std::string> left = core::categories_of(*broken, graph.graphs.front());
      if (std::find(left.begin(), left.end(), core::kUnsorted) == left.end()) continue;
      core::RulesByFamily broken_rules;
      for (const auto& [family, known] : clean_.rules) broken_rules[family] = broken;
      const Result<core::Ledger> ledger = core::analyse(clean_.record, broken_rules);
      if (!ledger) return ledger.error();
      // Both sides are read with the broken rules; the clean side is the same record with whole ones.
      core::WorkloadLedger mixed = clean_.workload();
      std::erase_if(mixed.checks, [](const core::Check& check) { return check.engine == "b"; });
      for (const core::Check& check : ledger->workloads.front().checks) {
        if (check.engine == "b") mixed.checks.push_back(check);
      }
      return judge_fault(fault, mixed);
    }
    return FaultVerdict{fault.name, fault.title, FaultVerdict::Outcome::kNotRun, "",
                        "every node has a second rule that takes it"};
  }

  Result<FaultVerdict> measure_fault(const Fault& fault) {
    // A run that is broken shows where its first copy is prepared and run.
    const bool is_replayed = fault.needs_replays || fault.name == "broken_fusion";
    CompareOptions options = short_session(fault.needs_replays ? kRoundsWithReplays : is_replayed ? 2 : 1);
    if (is_replayed) options.replayed_rows = std::set<std::string>{largest_row_};
    options.fault = fault.name;
    Result<Session> session = measure(options);
    if (!session && session.error().kind != Error::Kind::kFailure) return session.error();
    const bool has_failed = !session || session->error;
    if (session) {
      FaultVerdict verdict = judge_fault(fault, session->workload());
      if (!has_failed || verdict.outcome != FaultVerdict::Outcome::kQuiet) return verdict;
    }
    const Error error = session ? *session->error : session.error();
    // The same engine has just measured without the fault: a session refused or an engine dead is its doing.
    if (fault.name != "broken_fusion") return error;
    return FaultVerdict{fault.name, fault.title, FaultVerdict::Outcome::kFired, "session", error.message};
  }

  Status plant_work(const std::string& row) {
    progress_.say(fmt::format("planting {:.3g}% of the pass in {}", 100 * options_.share_ratio, row));
    CompareOptions options = options_.compare;
    options.replayed_rows = std::set<std::string>{row};
    const core::WorkloadFacts& workload = clean_.record.workloads.front();
    const double parts =
        workload.kind == core::WorkloadKind::kDecode ? static_cast<double>(workload.tokens_per_pass) : 1.0;
    options.planted = session::PlantedWork{row, options_.share_ratio * report_.pass_ms * parts * 1e6};
    Result<Session> session = measure(options);
    if (!session) return session.error();
    if (session->error) return *session->error;
    report_.rows.push_back(judge_row(session->workload(), row, truth_of(session->record)));
    progress_.say(fmt::format("{}: {}", row, report_.rows.back().text()));
    return {};
  }

  const Options& options_;
  const platform::Clock& clock_;
  const platform::Interrupt& interrupt_;
  session::Progress& progress_;
  Session clean_;
  std::string largest_row_;
  std::vector<std::string> rows_;
  Report report_;
};

}  // namespace

bool Report::passed() const {
  const bool rows_passed =
      std::all_of(rows.begin(), rows.end(), [](const RowVerdict& row) { return row.passed(); });
  const bool faults_fired = std::all_of(faults.begin(), faults.end(), [](const FaultVerdict& fault) {
    return fault.outcome == FaultVerdict::Outcome::kFired;
  });
  return rows_passed && faults_fired && false_alarms.empty();
}

std::vector<std::string> default_rows(const core::WorkloadLedger& ledger) {
  std::vector<const core::Row*> rows;
  for (const core::Row& row : ledger.rows) rows.push_back(&row);
  std::sort(rows.begin(), rows.end(), [&](const core::Row* x, const core::Row* y) {
    return share_of(*x, ledger) > share_of(*y, ledger);
  });
  std::vector<std::string> chosen;
  for (const double most_ratio : {1.0, kMediumRatio, kSmallRatio}) {
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const core::Row* row) {
      return most_ratio == 1.0 || share_of(*row, ledger) <= most_ratio;
    });
    const std::string& name = found == rows.end() ? rows.back()->scope : (*found)->scope;
    if (std::find(chosen.begin(), chosen.end(), name) == chosen.end()) chosen.push_back(name);
  }
  return chosen;
}

Result<Report> run_selftest(const Options& options, const platform::Clock& clock,
                            const platform::Interrupt& interrupt, session::Progress& progress) {
  return Selftest(options, clock, interrupt, progress).run();
}

}  // namespace opledger::selftest
