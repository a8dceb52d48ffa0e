// The outline: scopes over all workloads first, then one ledger per workload.
#include "core/ledger/analyse.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "core/base/check.h"
#include "core/ledger/checks.h"
#include "core/ledger/facts.h"
#include "core/ledger/pairing.h"
#include "core/ledger/rows.h"
#include "core/model/completeness.h"

namespace opledger::core {

namespace {

Result<RowKind> row_kind(const std::string& name) {
  if (name == "category") return RowKind::kCategory;
  if (name == "role") return RowKind::kRole;
  if (name == "layer") return RowKind::kLayer;
  if (name == "op") return RowKind::kOp;
  return Error::bad_input(
      fmt::format("record: key \"rows\" is \"{}\": category, role, layer or op are known", name));
}

Result<const RuleSet*> rules_of(const Record& record, Side side, const RulesByFamily& rules) {
  const EngineFacts* engine = record.engine(side);
  const std::string family = engine == nullptr ? "" : engine->family;
  const auto found = rules.find(family);
  if (found == rules.end())
    return Error::bad_input(
        fmt::format("record: no category rules for the engine family \"{}\" of side {}: add "
                    "schema/rules/{}.json",
                    family, side_name(side), family.empty() ? "FAMILY" : family));
  return found->second.get();
}

Check complete_check(const LedgerInput& input, const WorkloadFacts& workload, const RuleSet& rules,
                     const ModelFacts& model) {
  Check check{"complete", side_name(input.side), CheckStatus::kNotRun, std::nullopt, kFlopToleranceRatio, ""};
  const Completeness found =
      check_complete(*input.graph, rules, model, {workload.tokens_per_pass, workload.depth_tokens});
  if (!found.ran) {
    check.text = found.reason;
    return check;
  }
  check.status = found.complete ? CheckStatus::kHeld : CheckStatus::kFailed;
  if (found.flop_ratio) check.value = *found.flop_ratio - 1;
  check.text =
      fmt::format("{} nodes in {} units, {} of {} weight bytes read{}{}", found.working_nodes, found.units,
                  found.read_weight_bytes, found.file_weight_bytes,
                  found.flop_ratio ? fmt::format(", FLOPs {:.4f} of the closed form", *found.flop_ratio) : "",
                  found.notes.empty() ? "" : fmt::format(" ({})", fmt::join(found.notes, "; ")));
  if (!found.problems.empty())
    check.text = fmt::format("{}; {}", fmt::join(found.problems, "; "), check.text);
  return check;
}

std::vector<int> scope_of_units(const std::vector<LedgerInput>& inputs, const Scoping& scoping, Side side,
                                const std::string& workload) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].side == side && inputs[i].workload == workload) return scoping.unit_scope[i];
  }
  return {};
}

}  // namespace

std::vector<LedgerInput> ledger_inputs(const Record& record) {
  std::vector<LedgerInput> inputs;
  for (const WorkloadFacts& workload : record.workloads) {
    for (const Side side : detail::kBothSides) {
      if (const GraphFacts* graph = record.graph(side, workload.id))
        inputs.push_back({side, workload.id, &graph->graph});
    }
  }
  return inputs;
}

Result<std::vector<double>> launch_log_ratios(const Record& record, const WorkloadFacts& workload) {
  // Contamination is told from all stints together, so a sample could come and go between two looks.
  constexpr bool kLeavesOut = false;
  Result<detail::SideSamples> a = detail::collect_samples(record, Side::kA, workload, {}, kLeavesOut);
  if (!a) return a.error();
  Result<detail::SideSamples> b = detail::collect_samples(record, Side::kB, workload, {}, kLeavesOut);
  if (!b) return b.error();
  detail::tell_at_one_speed(*a, *b);
  std::vector<double> logs;
  for (const auto& [group, wall_ms] : a->wall_ms) {
    const auto other = b->wall_ms.find(group);
    if (other != b->wall_ms.end()) logs.push_back(std::log(wall_ms / other->second));
  }
  return logs;
}

Result<Ledger> analyse(const Record& record, const RulesByFamily& rules) {
  const std::vector<LedgerInput> inputs = ledger_inputs(record);
  std::vector<ScopedInput> scoped;
  std::map<std::string, std::vector<Check>> complete;
  for (const LedgerInput& input : inputs) {
    const Result<const RuleSet*> own = rules_of(record, input.side, rules);
    if (!own) return own.error();
    scoped.push_back({input.graph, *own});
    if (const ModelLine* model = record.model(input.side))
      complete[input.workload].push_back(
          complete_check(input, *record.workload(input.workload), **own, model->facts));
  }
  const Result<RowKind> rows = row_kind(record.header.rows);
  if (!rows) return rows.error();
  const Result<Scoping> scoping = scope_units(scoped, *rows);
  if (!scoping) return scoping.error();
  return analyse_scoped(record, *scoping, complete);
}

Result<Ledger> analyse_scoped(const Record& record, const Scoping& scoping,
                              const std::map<std::string, std::vector<Check>>& complete) {
  const std::vector<LedgerInput> inputs = ledger_inputs(record);
  OPLEDGER_CHECK(scoping.unit_scope.size() == inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    OPLEDGER_CHECK(scoping.unit_scope[i].size() == inputs[i].graph->unit_count());
  Ledger ledger;
  const auto labels = detail::engine_labels(record);
  ledger.engine_a = labels[0];
  ledger.engine_b = labels[1];
  ledger.differs = detail::differences_of(record);
  ledger.machine_json = detail::machine_json(record);
  ledger.engines_json = detail::engines_json(record);
  ledger.end_reason = record.end_reason.value_or("killed");
  for (const WorkloadFacts& workload : record.workloads) {
    const Result<detail::PairSamples> pair = detail::collect_pair(
        record, workload, scoping, scope_of_units(inputs, scoping, Side::kA, workload.id),
        scope_of_units(inputs, scoping, Side::kB, workload.id));
    if (!pair) return pair.error();
    WorkloadLedger one = detail::ledger_of(*pair);
    const auto made = complete.find(workload.id);
    one.checks = detail::checks_of(*pair, one, made == complete.end() ? std::vector<Check>{} : made->second);
    one.not_solid = detail::caveats_of(*pair, one);
    ledger.workloads.push_back(std::move(one));
  }
  return ledger;
}

}  // namespace opledger::core
