// The checks that need no file of their own, and the order of all.
#include "core/ledger/checks.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace opledger::core::detail {

namespace {

// The share of the gap, or of the pass, that may stay unexplained.
constexpr double kUnexplainedGapRatio = 0.10;
constexpr double kUnexplainedPassRatio = 0.01;
// Two correct engines differ in rounding, not in what they say: quantised CPU kernels of the same weights
// were seen to agree in 9 of 10 first choices on random weights, and more on trained ones.
constexpr double kSameAnswerTop1 = 0.8;
constexpr double kSameAnswerKlNats = 0.1;

void add_gap_closes(const WorkloadLedger& ledger, std::vector<Check>& checks) {
  Check check{"gap closes", "", CheckStatus::kNotRun, std::nullopt, std::nullopt, ""};
  if (!ledger.unexplained_gap.ms || !ledger.graph_gap.ms || !ledger.a.graph.ms || !ledger.b.graph.ms) {
    check.text = "needs stamped passes of both engines in the same launch group";
  } else {
    const double pass = std::max(*ledger.a.graph.ms, *ledger.b.graph.ms);
    check.value = std::abs(*ledger.unexplained_gap.ms);
    check.limit =
        std::max(kUnexplainedGapRatio * std::abs(*ledger.graph_gap.ms), kUnexplainedPassRatio * pass);
    check.status = *check.value <= *check.limit ? CheckStatus::kHeld : CheckStatus::kFailed;
    check.text = fmt::format("rows leave {} ms of a gap of {} ms unexplained, allowed {}",
                             brief_ms(*ledger.unexplained_gap.ms), brief_ms(*ledger.graph_gap.ms),
                             brief_ms(*check.limit));
  }
  checks.push_back(check);
}

void add_same_answer(const PairSamples& pair, std::vector<Check>& checks) {
  Check check{"same answer",        "",
              CheckStatus::kNotRun, std::nullopt,
              kSameAnswerTop1,      "no logits of both engines on the same tokens in the record"};
  for (const LogitsFacts& facts : pair.record->logits) {
    if (facts.workload != pair.workload->id || !facts.top1_agreement_ratio || !facts.kl_nats_mean) continue;
    check.value = facts.top1_agreement_ratio;
    const bool held =
        *facts.top1_agreement_ratio >= kSameAnswerTop1 && *facts.kl_nats_mean <= kSameAnswerKlNats;
    check.status = held ? CheckStatus::kHeld : CheckStatus::kFailed;
    check.text = fmt::format(
        "first choices agree in {:.1f}% of {} rows (at least {:.0f}%), KL {:.4f} nats (at most {:.1f})",
        100 * *check.value, facts.rows, 100 * kSameAnswerTop1, *facts.kl_nats_mean, kSameAnswerKlNats);
  }
  checks.push_back(check);
}

bool have_same_units(const Graph& x, const Graph& y) {
  if (x.signature != y.signature || x.units.size() != y.units.size()) return false;
  for (size_t i = 0; i < x.units.size(); ++i) {
    if (x.units[i].nodes != y.units[i].nodes) return false;
  }
  return true;
}

// A node that never appeared was fused into a consumer: it must share its unit with a node that did.
int lonely_unwritten_nodes(const WorkloadGraph& graph) {
  int lonely = 0;
  for (const Graph& g : graph.graphs) {
    for (const Unit& unit : g.units) {
      const auto was_left_out = [&](int node) {
        return g.nodes[static_cast<size_t>(node)].was_written == false;
      };
      if (std::all_of(unit.nodes.begin(), unit.nodes.end(), was_left_out)) ++lonely;
    }
  }
  return lonely;
}

// Graphs of that side and workload whose signature or units are not the probe's.
int graphs_unlike(const WorkloadGraph& probe, const Record& record, Side side, const std::string& workload) {
  int differing = 0;
  for (const GraphFacts& facts : record.graphs) {
    if (facts.side != side || facts.workload != workload) continue;
    if (facts.graph.graphs.size() != probe.graphs.size() || facts.graph.calls != probe.calls) ++differing;
    const size_t common = std::min(facts.graph.graphs.size(), probe.graphs.size());
    for (size_t g = 0; g < common; ++g)
      differing += have_same_units(facts.graph.graphs[g], probe.graphs[g]) ? 0 : 1;
  }
  return differing;
}

Check fusion(const PairSamples& pair, Side side) {
  Check check{"fusion", side_name(side), CheckStatus::kNotRun, std::nullopt, 0.0, "no graph in the record"};
  const WorkloadGraph* probe = pair.side(side).graph;
  if (probe == nullptr) return check;
  if (!probe->probe_ran) {
    check.text = "the probe did not run";
    if (!probe->probe_reason.empty()) check.text += ": " + probe->probe_reason;
    return check;
  }
  const int differing =
      lonely_unwritten_nodes(*probe) + graphs_unlike(*probe, *pair.record, side, pair.workload->id);
  check.value = differing;
  check.status = differing == 0 ? CheckStatus::kHeld : CheckStatus::kFailed;
  check.text = differing == 0 ? "the units measured are the groups that the probe saw executed together"
                              : fmt::format("{} graphs or units differ from what the probe saw", differing);
  return check;
}

void add_fusion(const PairSamples& pair, std::vector<Check>& checks) {
  for (const Side side : kBothSides) checks.push_back(fusion(pair, side));
}

void add_complete(const std::vector<Check>& complete, std::vector<Check>& checks) {
  for (const Side side : kBothSides) {
    const auto made = std::find_if(complete.begin(), complete.end(),
                                   [&](const Check& check) { return check.engine == side_name(side); });
    checks.push_back(made != complete.end()
                         ? *made
                         : Check{"complete", side_name(side), CheckStatus::kNotRun, std::nullopt,
                                 std::nullopt, "no graph or no model file's facts in the record"});
  }
}

void add_not_run(const char* name, const char* why, std::vector<Check>& checks) {
  for (const Side side : kBothSides)
    checks.push_back({name, side_name(side), CheckStatus::kNotRun, std::nullopt, std::nullopt, why});
}

}  // namespace

std::vector<Check> checks_of(const PairSamples& pair, const WorkloadLedger& ledger,
                             const std::vector<Check>& complete) {
  std::vector<Check> checks;
  add_result_checks(pair, checks);
  add_complete(complete, checks);
  add_closes(pair, checks);
  add_clocks_agree(pair, ledger, checks);
  add_gap_closes(ledger, checks);
  add_replay_checks(pair, checks);
  add_not_run("same work", "no measured ceilings in the record", checks);
  add_not_run("busy", "asked of accelerators only", checks);
  add_fusion(pair, checks);
  add_same_answer(pair, checks);
  add_quiet(pair, checks);
  return checks;
}

}  // namespace opledger::core::detail
