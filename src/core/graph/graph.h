// What an engine really executes for one workload: the reply of the protocol's `graph`, as plain data.
// Pure data: nothing here knows an engine. Field meanings and units: docs/protocol.md.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace opledger::core {

enum class TensorKind { kWeight, kKv, kState, kInput, kOther };

/// A tensor that no node of the graph computes.
struct Tensor {
  std::string name;
  TensorKind kind = TensorKind::kOther;
  std::string type;
  std::array<int64_t, 4> ne{1, 1, 1, 1};
  std::array<int64_t, 4> nb{0, 0, 0, 0};
  int64_t bytes = 0;
  std::string buffer;
  std::string variant;  ///< empty when the engine says nothing
};

enum class Lasting { kNone, kKv, kState };

struct Node {
  std::string op;
  std::string name;
  std::string type;
  std::array<int64_t, 4> ne{1, 1, 1, 1};
  std::array<int64_t, 4> nb{0, 0, 0, 0};
  std::vector<int> src;  ///< >= 0: a node; < 0: tensors[-1 - src]
  bool is_view = false;
  bool is_in_place = false;
  Lasting writes = Lasting::kNone;
  std::optional<bool> was_written;  ///< empty: nobody looked
  int64_t read_bytes = 0;
  int64_t write_bytes = 0;
  int64_t flop = 0;
  std::string device;
  std::string variant;
};

struct Unit {
  std::vector<int> nodes;
  std::string why;
};

struct Graph {
  std::string signature;
  std::vector<Node> nodes;
  std::vector<Tensor> tensors;
  std::vector<Unit> units;
};

/// Which experts one routed node selected.
struct Routing {
  int graph = 0;
  int node = 0;
  int layer = -1;
  int64_t experts = 0;
  int64_t used = 0;
  int64_t tokens = 0;
  std::vector<int64_t> distinct;  ///< one per call of that graph
};

struct WorkloadGraph {
  std::string workload;
  std::vector<int> calls;  ///< index into graphs, one per graph call of a pass
  std::vector<Graph> graphs;
  std::vector<Routing> routing;
  bool probe_ran = false;
  std::string probe_reason;  ///< why the probe did not run

  /// Units over all graphs: the length of every per-unit array of this workload.
  [[nodiscard]] size_t unit_count() const;
  /// Calls of a pass that execute graph `graph`.
  [[nodiscard]] int calls_of(int graph) const;
};

/// Reads a `graph` reply. Every index is checked; the error names the key.
Result<WorkloadGraph> parse_workload_graph(std::string_view json);

}  // namespace opledger::core
