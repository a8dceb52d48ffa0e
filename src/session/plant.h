// Where planted work goes: which units of a row get a spin behind them, and how long each spins. Pure; what
// the spins really did is told by the engine's blocks.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/record/record.h"

namespace opledger::session {

/// Work of known size for one row of an engine (capability `plant`).
struct PlantedWork {
  std::string row;
  double pass_ns = 0;  ///< all of it together, in one pass
};

struct PlantedSpin {
  core::UnitName unit;
  int64_t spin_ns = 0;  ///< per execution
};

/// A spin shorter than this would be known less well than it is measured.
inline constexpr double kLeastSpinNs = 2e4;

/// Equal spins that add up to `pass_ns`, behind as many of `units` as can have kLeastSpinNs each (one at the
/// least), evenly spread. Empty without units.
std::vector<PlantedSpin> spread_spins(const core::WorkloadGraph& graph,
                                      const std::vector<core::UnitName>& units, double pass_ns);

/// As `graph` takes it. `spins` false: the same nodes, which spin 0 ns.
nlohmann::json plant_request(const std::vector<PlantedSpin>& planted, bool spins);

}  // namespace opledger::session
