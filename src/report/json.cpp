// The published forms, version 1 (schema/ledger.schema.json, schema/regress.schema.json): other programs rely
// on these keys. Unknown is null.
#include <cmath>
#include <nlohmann/json.hpp>

#include "report/renderers.h"

namespace opledger::report {

namespace {

// Ordered: people read this too.
using Json = nlohmann::ordered_json;

Json number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

Json interval(const std::optional<std::array<double, 2>>& ci) {
  return ci ? Json::array({(*ci)[0], (*ci)[1]}) : Json(nullptr);
}

Json measured(const core::Measured& m) {
  return {{"ms", number(m.ms)}, {"ci_ms", interval(m.ci_ms)}};
}

Json sides(const core::Measured& a, const core::Measured& b, const core::Measured& gap) {
  return {{"a", measured(a)}, {"b", measured(b)}, {"gap", measured(gap)}};
}

Json workload_side(const core::WorkloadSide& side) {
  return {{"engine", side.engine},
          {"wall", measured(side.wall)},
          {"graph", measured(side.graph)},
          {"tokens_per_s", number(side.tokens_per_s)},
          {"launch_groups", side.launch_groups},
          {"passes", side.passes},
          {"dropped", side.dropped},
          {"excluded_bytes_ratio", number(side.excluded_bytes_ratio)}};
}

Json replay_side(const std::optional<core::ReplaySide>& side) {
  if (!side) return nullptr;
  return {{"ms", number(side->cost.ms)},
          {"ci_ms", interval(side->cost.ci_ms)},
          {"k", side->copies ? Json(*side->copies) : Json(nullptr)},
          {"weights", side->weights},
          {"copy_ms", number(side->copy_ms)},
          {"original_ms", number(side->original_ms)}};
}

Json row_json(const core::Row& row) {
  return {{"scope", row.scope},
          {"categories", row.categories},
          {"evidence", row.evidence},
          {"a", measured(row.a)},
          {"b", measured(row.b)},
          {"gap", measured(row.gap)},
          {"real", row.is_real},
          {"share_of_gap", number(row.share_of_gap)},
          {"stamp", {{"a", measured(row.stamp_a)}, {"b", measured(row.stamp_b)}}},
          {"replay", {{"a", replay_side(row.replay_a)}, {"b", replay_side(row.replay_b)}}},
          {"nodes", {{"a", row.nodes_a}, {"b", row.nodes_b}}},
          {"bound", row.bound ? Json(*row.bound) : Json(nullptr)},
          {"notes", row.notes}};
}

Json check_json(const core::Check& check) {
  return {{"name", check.name},
          {"engine", check.engine.empty() ? Json(nullptr) : Json(check.engine)},
          {"status", core::check_status_name(check.status)},
          {"value", number(check.value)},
          {"limit", number(check.limit)},
          {"text", check.text}};
}

Json checks_json(const core::WorkloadLedger& w) {
  Json checks = Json::array();
  for (const core::Check& check : w.checks) checks.push_back(check_json(check));
  return checks;
}

Json workload_json(const core::WorkloadLedger& w) {
  Json rows = Json::array();
  for (const core::Row& row : w.rows) rows.push_back(row_json(row));
  return {{"name", w.name},
          {"tokens", w.tokens},
          {"a", workload_side(w.a)},
          {"b", workload_side(w.b)},
          {"gap", measured(w.gap)},
          {"ratio", number(w.ratio)},
          {"noise_floor_ms", number(w.noise_floor_ms)},
          {"wall_minus_graph", sides(w.wall_minus_graph_a, w.wall_minus_graph_b, w.wall_minus_graph_gap)},
          {"unexplained", sides(w.unexplained_a, w.unexplained_b, w.unexplained_gap)},
          {"rows", rows},
          {"checks", checks_json(w)},
          {"next", w.next},
          {"leave", w.leave},
          {"not_solid", w.not_solid}};
}

Json embedded(const std::string& text) {
  Json value = Json::parse(text, nullptr, false);
  return value.is_discarded() ? Json::object() : value;
}

std::string text_of(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json moved_json(const core::MovedRow& moved) {
  return {{"scope", moved.row.scope},
          {"categories", moved.row.categories},
          {"evidence", moved.row.evidence},
          {"head", measured(moved.row.a)},
          {"base", measured(moved.row.b)},
          {"gap", measured(moved.row.gap)},
          {"share_of_pass_ratio", number(moved.share_of_pass_ratio)},
          {"notes", moved.row.notes}};
}

Json text_or_null(const std::optional<std::string>& text) {
  return text ? Json(*text) : Json(nullptr);
}

Json graph_changes_json(const std::optional<std::vector<core::GraphChange>>& changes) {
  if (!changes) return nullptr;
  Json list = Json::array();
  for (const core::GraphChange& change : *changes) {
    list.push_back({{"change", core::graph_change_name(change.kind)},
                    {"op", change.op},
                    {"category", change.category},
                    {"role", change.role.empty() ? Json(nullptr) : Json(change.role)},
                    {"per_pass", change.per_pass},
                    {"before", text_or_null(change.before)},
                    {"after", text_or_null(change.after)}});
  }
  return list;
}

Json regression_json(const core::WorkloadLedger& w, const core::WorkloadRegression& regression) {
  Json moved = Json::array();
  for (const core::MovedRow& row : regression.moved) moved.push_back(moved_json(row));
  return {{"name", w.name},
          {"tokens", w.tokens},
          {"verdict", core::regression_name(regression.verdict)},
          {"head", workload_side(w.a)},
          {"base", workload_side(w.b)},
          {"gap", measured(w.gap)},
          {"ratio", number(w.ratio)},
          {"ratio_ci", interval(w.ratio_ci)},
          {"noise_floor_ms", number(w.noise_floor_ms)},
          {"moved", moved},
          {"wall_minus_graph_gap", measured(w.wall_minus_graph_gap)},
          {"unexplained_gap", measured(w.unexplained_gap)},
          {"graph_changes", graph_changes_json(regression.graph_changes)},
          {"checks", checks_json(w)},
          {"not_solid", w.not_solid}};
}

}  // namespace

std::string render_json(const core::Regression& regression) {
  const core::Ledger& ledger = regression.ledger;
  Json workloads = Json::array();
  for (size_t i = 0; i < ledger.workloads.size(); ++i)
    workloads.push_back(regression_json(ledger.workloads[i], regression.workloads[i]));
  const Json out = {{"schema", "opledger-regress/1"},
                    {"head", ledger.engine_a},
                    {"base", ledger.engine_b},
                    {"verdict", core::regression_name(regression.verdict())},
                    {"min_effect_ratio", regression.min_effect_ratio},
                    {"workloads", workloads},
                    {"machine", embedded(ledger.machine_json)},
                    {"engines", embedded(ledger.engines_json)},
                    {"differs", ledger.differs}};
  return text_of(out);
}

std::string render_json(const core::Ledger& ledger) {
  Json workloads = Json::array();
  for (const core::WorkloadLedger& w : ledger.workloads) workloads.push_back(workload_json(w));
  const Json out = {{"schema", "opledger-ledger/1"},
                    {"workloads", workloads},
                    {"machine", embedded(ledger.machine_json)},
                    {"engines", embedded(ledger.engines_json)},
                    {"differs", ledger.differs}};
  return text_of(out);
}

}  // namespace opledger::report
