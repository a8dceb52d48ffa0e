// The `graph` reply of the protocol, from a described workload.
#pragma once

#include <nlohmann/json.hpp>

#include "engines/ggml/workload.h"

namespace opledger::ggml {

nlohmann::json workload_json(const Workload& workload);

}  // namespace opledger::ggml
