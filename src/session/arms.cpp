// Sums per step first, medians over steps after: a sum of medians is no step that ever ran.
#include "session/arms.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "session/block_check.h"

namespace opledger::session {
namespace {

using nlohmann::json;

bool has(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string replay_id(const ArmPlan& arm, const std::string& weights) {
  return fmt::format("{}:{}:{}:{}", arm.kind, arm.scope, weights, arm.copies.value_or(1));
}

/// Nanoseconds of one clock: prices do not differ by unit, and one figure for all is far less noisy than one
/// each.
double median_price_ns(const std::vector<json>& price_blocks) {
  std::vector<double> units;
  for (const json& block : price_blocks) {
    for (const json& step : block.at("unit_ns")) {
      for (const json& unit : step) units.push_back(unit.get<double>());
    }
  }
  return median_of(units);
}

std::set<core::UnitName> units_of(const ArmPlan& arm) {
  std::set<core::UnitName> units;
  for (const AskedUnit& asked : arm.units) units.insert(asked.unit);
  return units;
}

/// Median over steps of the sum of the wanted units' intervals (`field`: unit_ns or copy_ns) less their
/// prices.
std::optional<double> median_sum_ns(const std::vector<core::UnitName>& order, const BlocksByArm& blocks,
                                    const std::string& arm, const char* field,
                                    const std::set<core::UnitName>& wanted) {
  const auto found = blocks.find(arm);
  const auto prices = blocks.find("price");
  if (found == blocks.end() || prices == blocks.end()) return std::nullopt;
  const double price_ns = median_price_ns(prices->second);
  std::vector<double> sums;
  for (const json& block : found->second) {
    for (const json& step : block.at(field)) {
      double sum = 0;
      for (size_t u = 0; u < order.size(); ++u) {
        if (wanted.count(order[u]) > 0) sum += step.at(u).get<double>() - price_ns;
      }
      sums.push_back(sum);
    }
  }
  return median_of(sums);
}

}  // namespace

json ArmPlan::to_json(bool for_record) const {
  json out{{"id", id}, {"kind", kind}};
  if (kind == "replay" || kind == "stamped_replay") {
    json list = json::array();
    for (const AskedUnit& asked : units) {
      list.push_back({{"unit", {asked.unit.graph, asked.unit.unit}},
                      {"copies", asked.copies},
                      {"weights", asked.weights},
                      {"stride", asked.stride}});
    }
    out["units"] = std::move(list);
    if (for_record) {
      out["scope"] = scope;
      out["copies"] = copies.value_or(1);
    }
  }
  return out;
}

std::vector<ArmPlan> base_arms(const std::vector<std::string>& engine_arms) {
  std::vector<ArmPlan> arms;
  for (const char* kind : {"baseline", "price", "stamp", "empty"}) {
    if (!has(engine_arms, kind)) continue;
    ArmPlan arm;
    arm.id = kind;
    arm.kind = kind;
    arms.push_back(std::move(arm));
  }
  return arms;
}

std::vector<core::UnitName> units_in_order(const core::WorkloadGraph& graph) {
  std::vector<core::UnitName> units;
  for (size_t g = 0; g < graph.graphs.size(); ++g) {
    for (size_t u = 0; u < graph.graphs[g].units.size(); ++u) {
      units.push_back({static_cast<int>(g), static_cast<int>(u)});
    }
  }
  return units;
}

int64_t weight_bytes_of(const core::Graph& graph, const core::Unit& unit) {
  std::set<int> tensors;
  for (const int node : unit.nodes) {
    for (const int source : graph.nodes[static_cast<size_t>(node)].src) {
      if (source < 0) tensors.insert(-1 - source);
    }
  }
  int64_t bytes = 0;
  for (const int index : tensors) {
    const core::Tensor& tensor = graph.tensors[static_cast<size_t>(index)];
    if (tensor.kind == core::TensorKind::kWeight) bytes += tensor.bytes;
  }
  return bytes;
}

int copies_for(double share_ratio) {
  const double allowed = std::max(0.05 * share_ratio, 0.005);
  // The steps of four arms side by side scatter by 3 to 10% of a pass on a shared machine, so 80 of them tell
  // 1 to 2% of a pass.
  return static_cast<int>(std::clamp(std::ceil(0.04 / allowed), 1.0, 8.0));
}

int stride_for(int layers, int copies, int interval) {
  const int step = std::max(interval, 1);
  const int even = layers / (copies + 1) / step * step;
  return std::max(even, std::min(step, std::max(layers - 1, 1)));
}

bool settle_weights(const core::WorkloadGraph& graph, const json& prepared_arm, bool may_shadow,
                    ArmPlan& arm) {
  std::set<core::UnitName> kept_same;
  for (const json& unit : prepared_arm.at("units")) {
    if (unit.at("weights") == "same") kept_same.insert({unit.at("unit").at(0), unit.at("unit").at(1)});
  }
  std::map<std::string, int64_t> bytes_by_weights;
  bool changed = false;
  for (AskedUnit& asked : arm.units) {
    const core::Graph& g = graph.graphs[static_cast<size_t>(asked.unit.graph)];
    const int64_t bytes = weight_bytes_of(g, g.units[static_cast<size_t>(asked.unit.unit)]);
    const bool is_single = asked.copies == 1;
    const bool has_no_sibling = asked.weights == "sibling" && bytes > 0 && kept_same.count(asked.unit) > 0;
    if (has_no_sibling && (is_single || may_shadow)) {
      asked.weights = is_single ? "same" : "shadow";
      changed = true;
    }
    bytes_by_weights[asked.weights] += bytes;
  }
  if (!changed) return false;
  const auto most = std::max_element(bytes_by_weights.begin(), bytes_by_weights.end(),
                                     [](const auto& x, const auto& y) { return x.second < y.second; });
  arm.id = replay_id(arm, most->first);
  return true;
}

std::vector<ScopeShare> scope_shares(const core::WorkloadGraph& graph, const std::vector<int>& unit_scope,
                                     const std::vector<std::string>& scope_names,
                                     const std::vector<json>& stamp_blocks,
                                     const std::vector<json>& price_blocks) {
  const std::vector<core::UnitName> units = units_in_order(graph);
  const double price_ns = median_price_ns(price_blocks);
  std::vector<std::vector<double>> sums(scope_names.size());
  std::vector<double> steps;
  for (const json& block : stamp_blocks) {
    const std::vector<json> graph_ns = steps_of(block);
    for (size_t step = 0; step < graph_ns.size(); ++step) {
      const json& unit_ns = block.at("unit_ns").at(step);
      std::vector<double> sum(scope_names.size(), 0.0);
      for (size_t u = 0; u < units.size(); ++u) {
        sum[static_cast<size_t>(unit_scope[u])] += unit_ns.at(u).get<double>() - price_ns;
      }
      for (size_t s = 0; s < sums.size(); ++s) sums[s].push_back(sum[s]);
      steps.push_back(graph_ns[step].get<double>() - price_ns * static_cast<double>(units.size()));
    }
  }
  const double step_ns = median_of(steps);
  std::vector<ScopeShare> shares;
  if (step_ns <= 0) return shares;
  for (size_t s = 0; s < scope_names.size(); ++s) {
    ScopeShare share{scope_names[s], {}, median_of(sums[s]) / step_ns};
    for (size_t u = 0; u < units.size(); ++u) {
      if (unit_scope[u] == static_cast<int>(s)) share.units.push_back(units[u]);
    }
    if (!share.units.empty()) shares.push_back(std::move(share));
  }
  return shares;
}

std::vector<ArmPlan> replay_arms(const ScopeShare& scope, const std::vector<std::string>& engine_arms,
                                 int layers, int interval) {
  std::vector<ArmPlan> arms;
  const auto add = [&](const char* kind, int copies) {
    if (!has(engine_arms, kind)) return;
    ArmPlan arm;
    arm.kind = kind;
    arm.scope = scope.scope;
    arm.copies = copies;
    arm.id = replay_id(arm, "sibling");
    arm.cost_ratio = 1.0 + copies * std::max(scope.share_ratio, 0.0);
    for (const core::UnitName& unit : scope.units) {
      arm.units.push_back({unit, copies, "sibling", stride_for(layers, copies, interval)});
    }
    arms.push_back(std::move(arm));
  };
  const int copies = copies_for(scope.share_ratio);
  add("replay", copies);
  add("stamped_replay", copies);
  // Attention at depth 64: of two copies the second took 0.54 ms where the first and the original take 0.81.
  if (copies > 1) add("stamped_replay", 1);
  return arms;
}

std::optional<ArmPlan> small_rows_arm(const std::vector<ScopeShare>& rows,
                                      const std::vector<std::string>& engine_arms, int layers, int interval) {
  if (rows.empty() || !has(engine_arms, "stamped_replay")) return std::nullopt;
  ArmPlan arm;
  arm.kind = "stamped_replay";
  arm.scope = core::kSmallRows;
  arm.copies = 1;
  arm.id = replay_id(arm, "sibling");
  for (const ScopeShare& row : rows) {
    arm.cost_ratio += std::max(row.share_ratio, 0.0);
    for (const core::UnitName& unit : row.units)
      arm.units.push_back({unit, 1, "sibling", stride_for(layers, 1, interval)});
  }
  return arm;
}

std::optional<double> copy_excess_ratio(const core::WorkloadGraph& graph, const ArmPlan& arm,
                                        const BlocksByArm& blocks) {
  const std::vector<core::UnitName> order = units_in_order(graph);
  const std::set<core::UnitName> wanted = units_of(arm);
  const auto copies_ns = median_sum_ns(order, blocks, arm.id, "copy_ns", wanted);
  const auto originals_ns = median_sum_ns(order, blocks, "stamp", "unit_ns", wanted);
  if (!copies_ns || !originals_ns || *originals_ns <= 0) return std::nullopt;
  return *copies_ns / arm.copies.value_or(1) / *originals_ns - 1;
}

std::optional<ArmPlan> bracket_twin(const core::WorkloadGraph& graph, const ArmPlan& arm) {
  ArmPlan twin = arm;
  twin.is_twin = true;
  const auto reads_weights = [&](const AskedUnit& asked) {
    const core::Graph& g = graph.graphs[static_cast<size_t>(asked.unit.graph)];
    return weight_bytes_of(g, g.units[static_cast<size_t>(asked.unit.unit)]) > 0;
  };
  const bool is_in_place = std::any_of(arm.units.begin(), arm.units.end(), [&](const AskedUnit& asked) {
    return asked.weights != "shadow" && reads_weights(asked);
  });
  const std::string weights = is_in_place ? "shadow" : "same";
  bool has_changed = false;
  for (AskedUnit& asked : twin.units) {
    if (!reads_weights(asked) || asked.weights == weights) continue;
    asked.weights = weights;
    has_changed = true;
  }
  twin.id = replay_id(twin, weights);
  if (!has_changed || twin.id == arm.id) return std::nullopt;
  return twin;
}

}  // namespace opledger::session
