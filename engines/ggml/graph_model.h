// A graph that the engine executed, described by indices: which nodes there are, what they read, what they
// cost in bytes and FLOPs, and which groups of nodes are units. Valid for every later graph of the same
// signature, whatever its addresses.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "engines/ggml/planted.h"
#include "engines/ggml/tree.h"

namespace opledger::ggml {

/// What kind of memory a tensor that no node computes lies in.
enum class LeafKind { kWeight, kKv, kState, kInput, kOther };

struct Leaf {
  const ggml_tensor* tensor = nullptr;  ///< weights, KV and state stay where they are for the engine's life
  LeafKind kind = LeafKind::kOther;
};

struct NodeFacts {
  bool is_view = false;
  bool is_in_place = false;         ///< its memory is one of its sources' memory
  std::optional<LeafKind> lasting;  ///< kKv or kState when it writes there
  std::optional<bool> was_written;  ///< by the probe; false: fused away
  int64_t read_bytes = 0, write_bytes = 0, flop = 0;
  size_t extent_bytes = 0;   ///< from its first to its last element
  std::vector<int> sources;  ///< >= 0 node, < 0 leaf -1 - i
  int expert_ids = -1;       ///< source slot of the expert ids of a routed node
  int64_t routed_used = 0, routed_tokens = 0;
};

/// How a node looked when it was described: for people and for the category rules.
struct NodeLook {
  std::string op, name, type;
  std::array<int64_t, 4> ne{}, nb{};
};

struct UnitNodes {
  std::vector<int> nodes;
  std::string why;
};

struct GraphModel {
  std::string signature;
  std::vector<NodeFacts> nodes;
  std::vector<NodeLook> looks;  ///< same order as nodes
  std::vector<Leaf> leaves;
  std::vector<UnitNodes> units;
  std::string device;
  std::map<int, std::unique_ptr<Spin>> planted;  ///< unit -> work behind its last node; spins stay in place

  [[nodiscard]] int node_count() const { return static_cast<int>(nodes.size()); }
};

using NodeIndex = std::unordered_map<const ggml_tensor*, int>;

/// Position of every node of a graph.
NodeIndex index_nodes(const ggml_cgraph* graph);

/// Describes a graph; every working node is a unit of its own until a probe says otherwise.
GraphModel describe_graph(ggml_backend_t backend, const ggml_cgraph* graph,
                          const std::set<std::string>& weight_names);

/// 32 hex digits over ops, parameters, shapes, types, names and sources; no address, no position in a cache.
std::string signature_of(const ggml_cgraph* graph);

/// Makes `groups` (node indices) units and every other working node a unit of its own.
void set_units(GraphModel& model, const std::vector<UnitNodes>& groups);

/// The op's name, with its kind where one op has many: "UNARY:SILU".
std::string op_name_of(const ggml_tensor* node);

/// Layer of a tensor named `blk.N.` (-1 when it has none), and the rest of its name.
struct WeightRole {
  int layer = -1;
  std::string role;
};
WeightRole role_of(const char* weight_name);

}  // namespace opledger::ggml
