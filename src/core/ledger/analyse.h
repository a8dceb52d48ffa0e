// From a record to its ledger. Pure: the same record gives the same ledger, on any machine, at any time.
// Formulas, worked examples and when not to believe them: docs/method.md.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/ledger/ledger.h"
#include "core/record/record.h"
#include "core/scopes/scopes.h"

namespace opledger::core {

/// Category rules by engine family ("llama.cpp", "ik_llama.cpp").
using RulesByFamily = std::map<std::string, std::shared_ptr<const RuleSet>>;

/// The ledger of a record, whole or interrupted: what was not measured is empty, what could not be checked
/// says so. Bad input: a family without rules, arrays that do not fit the record's own graphs.
Result<Ledger> analyse(const Record& record, const RulesByFamily& rules);

/// log(wall of a / wall of b) of each launch group of a workload in which both have baselines, in order. Bad
/// input: as analyse().
Result<std::vector<double>> launch_log_ratios(const Record& record, const WorkloadFacts& workload);

/// One side of one workload whose graph the record holds: an input of the scoping.
struct LedgerInput {
  Side side = Side::kA;
  std::string workload;
  const WorkloadGraph* graph = nullptr;  ///< points into the record
};

/// The inputs in the order in which scope_units must see them: workloads in record order, a before b.
std::vector<LedgerInput> ledger_inputs(const Record& record);

/// The same, with scopes already decided over ledger_inputs(record), and `complete` checks made elsewhere
/// (by workload id).
Result<Ledger> analyse_scoped(const Record& record, const Scoping& scoping,
                              const std::map<std::string, std::vector<Check>>& complete);

}  // namespace opledger::core
