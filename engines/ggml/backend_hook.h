// Sees every graph that any backend of the driven engine executes: after the scheduler, graph optimisation
// and fusion planning have done their work, in the thread that calls decode.
#pragma once

#include <functional>
#include <string>

#include "engines/ggml/tree.h"

namespace opledger::ggml {

/// Called instead of the backend's own graph execution. Use `execute` to run a graph.
using GraphHandler = std::function<ggml_status(ggml_backend_t, ggml_cgraph*)>;

/// Must be called before the engine creates its first backend.
void install_backend_hook();

/// Replaces the handler; an empty one executes graphs as they come.
void set_graph_handler(GraphHandler handler);

/// Puts the engine's own function pointers back (false), or ours again (true): the price of the hook itself.
void attach_backend_hook(bool attached);

/// Executes a graph with the engine's own code and waits until it is done.
ggml_status execute(ggml_backend_t backend, ggml_cgraph* graph);

/// Name of a hooked backend that is not the CPU; empty when there is none.
std::string non_cpu_backend();

}  // namespace opledger::ggml
