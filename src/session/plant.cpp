#include "session/plant.h"

#include <algorithm>
#include <cmath>

namespace opledger::session {

std::vector<PlantedSpin> spread_spins(const core::WorkloadGraph& graph,
                                      const std::vector<core::UnitName>& units, double pass_ns) {
  double executions = 0;
  for (const core::UnitName& unit : units) executions += graph.calls_of(unit.graph);
  if (executions < 1) return {};
  const auto all = static_cast<double>(units.size());
  const double affordable = std::floor(all * pass_ns / kLeastSpinNs / executions);
  const auto count = static_cast<size_t>(std::clamp(affordable, 1.0, all));
  std::vector<PlantedSpin> planted;
  double planted_executions = 0;
  for (size_t i = 0; i < count; ++i) {
    const core::UnitName& unit = units[i * units.size() / count];
    planted.push_back({unit, 0});
    planted_executions += graph.calls_of(unit.graph);
  }
  for (PlantedSpin& spin : planted)
    spin.spin_ns = static_cast<int64_t>(std::llround(pass_ns / std::max(planted_executions, 1.0)));
  return planted;
}

nlohmann::json plant_request(const std::vector<PlantedSpin>& planted, bool spins) {
  nlohmann::json out = nlohmann::json::array();
  for (const PlantedSpin& spin : planted)
    out.push_back({{"unit", {spin.unit.graph, spin.unit.unit}}, {"spin_ns", spins ? spin.spin_ns : 0}});
  return out;
}

}  // namespace opledger::session
