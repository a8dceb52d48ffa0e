// Finds by looking which nodes the engine executes together. Three looks, none of which knows an engine:
//  1. every node gets a private, poisoned output: an output (or a view of one) still poisoned afterwards was
//     fused into its consumers;
//  2. a node and the next one of the same op that share an input, the input overwritten by the first: when
//  the
//     second still gives the right answer it did not read the input again, so the two are one run;
//  3. a node, views, and a node that reads one of the views, the view's memory exchanged: when the last
//     node's answer does not follow, the first had already computed it.
// Executes fragments of the graph on odd data: may crash on engines that count on more than they say, so it
// belongs in a process that may die.
#pragma once

#include <string>
#include <vector>

#include "engines/ggml/graph_model.h"

namespace opledger::ggml {

struct ProbeResult {
  bool ran = false;
  std::string reason;  ///< why it did not run
  std::vector<UnitNodes> groups;
  std::vector<std::optional<bool>> was_written;  ///< per node
};

/// Must be called inside the engine's graph execution, before the graph itself is executed (its inputs are
/// overwritten afterwards). `memory_limit_bytes`: refused above it.
ProbeResult probe_graph(ggml_backend_t backend, const ggml_cgraph* graph, const GraphModel& model,
                        size_t memory_limit_bytes);

}  // namespace opledger::ggml
