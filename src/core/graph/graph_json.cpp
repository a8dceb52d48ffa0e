// Reads the protocol's `graph` reply into plain data. Refuses every index that points nowhere and every unit
// that overlaps another: what analysis reads later needs no checks of its own.
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "core/graph/graph.h"

namespace opledger::core {

size_t WorkloadGraph::unit_count() const {
  size_t count = 0;
  for (const auto& graph : graphs) count += graph.units.size();
  return count;
}

int WorkloadGraph::calls_of(int graph) const {
  int count = 0;
  for (const int call : calls) count += call == graph ? 1 : 0;
  return count;
}

namespace {

using Json = nlohmann::json;

/// Thrown and caught inside this file only: a reply is nested too deeply to hand a Status through each level.
struct BadReply : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw BadReply(fmt::format("graph reply: {} {}", where, what));
}

const Json& member(const Json& object, const char* key, const std::string& where) {
  if (!object.is_object()) refuse(where, "is not an object");
  const auto found = object.find(key);
  if (found == object.end()) refuse(fmt::format("{}.{}", where, key), "is missing");
  return *found;
}

int64_t integer_of(const Json& value, const std::string& where) {
  if (!value.is_number_integer()) refuse(where, "is not an integer");
  return value.get<int64_t>();
}

int64_t count_of(const Json& object, const char* key, const std::string& where) {
  const int64_t value = integer_of(member(object, key, where), fmt::format("{}.{}", where, key));
  if (value < 0) refuse(fmt::format("{}.{}", where, key), "is negative");
  return value;
}

bool flag_of(const Json& object, const char* key, const std::string& where) {
  const Json& value = member(object, key, where);
  if (!value.is_boolean()) refuse(fmt::format("{}.{}", where, key), "is not true or false");
  return value.get<bool>();
}

std::string text_of(const Json& object, const char* key, const std::string& where) {
  const Json& value = member(object, key, where);
  if (!value.is_string()) refuse(fmt::format("{}.{}", where, key), "is not text");
  return value.get<std::string>();
}

/// Text or null; null and absent read as empty.
std::string optional_text_of(const Json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return {};
  return text_of(object, key, where);
}

const Json& list_of(const Json& object, const char* key, const std::string& where) {
  const Json& value = member(object, key, where);
  if (!value.is_array()) refuse(fmt::format("{}.{}", where, key), "is not a list");
  return value;
}

std::array<int64_t, 4> four_of(const Json& object, const char* key, const std::string& where) {
  const Json& list = list_of(object, key, where);
  const std::string path = fmt::format("{}.{}", where, key);
  if (list.size() != 4) refuse(path, "does not have four entries");
  std::array<int64_t, 4> values{};
  for (size_t i = 0; i < 4; ++i) values[i] = integer_of(list[i], path);
  return values;
}

int index_of(const Json& value, size_t limit, const std::string& where) {
  const int64_t index = integer_of(value, where);
  if (index < 0 || static_cast<size_t>(index) >= limit) {
    refuse(where, fmt::format("is {}, outside 0 to {}", index, static_cast<int64_t>(limit) - 1));
  }
  return static_cast<int>(index);
}

TensorKind kind_of(const Json& object, const std::string& where) {
  const std::string kind = text_of(object, "kind", where);
  if (kind == "weight") return TensorKind::kWeight;
  if (kind == "kv") return TensorKind::kKv;
  if (kind == "state") return TensorKind::kState;
  if (kind == "input") return TensorKind::kInput;
  if (kind == "other") return TensorKind::kOther;
  refuse(where + ".kind", fmt::format("is \"{}\", not weight, kv, state, input or other", kind));
}

Lasting lasting_of(const Json& object, const std::string& where) {
  const Json& value = member(object, "writes", where);
  if (value.is_null()) return Lasting::kNone;
  if (value == "kv") return Lasting::kKv;
  if (value == "state") return Lasting::kState;
  refuse(where + ".writes", "is not null, \"kv\" or \"state\"");
}

Tensor tensor_of(const Json& object, const std::string& where) {
  Tensor tensor;
  tensor.name = text_of(object, "name", where);
  tensor.kind = kind_of(object, where);
  tensor.type = text_of(object, "type", where);
  tensor.ne = four_of(object, "ne", where);
  tensor.nb = four_of(object, "nb", where);
  tensor.bytes = count_of(object, "bytes", where);
  tensor.buffer = optional_text_of(object, "buffer", where);
  tensor.variant = optional_text_of(object, "variant", where);
  return tensor;
}

std::vector<int> sources_of(const Json& object, size_t own_index, size_t tensor_count,
                            const std::string& where) {
  std::vector<int> sources;
  const Json& list = list_of(object, "src", where);
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string path = fmt::format("{}.src[{}]", where, i);
    const int64_t source = integer_of(list[i], path);
    if (source >= static_cast<int64_t>(own_index)) {
      refuse(path, fmt::format("is node {}, which does not come before node {}", source, own_index));
    }
    if (source < -static_cast<int64_t>(tensor_count)) {
      refuse(path, fmt::format("is {}, but the graph has {} tensors", source, tensor_count));
    }
    sources.push_back(static_cast<int>(source));
  }
  return sources;
}

Node node_of(const Json& object, size_t own_index, size_t tensor_count, const std::string& where) {
  Node node;
  node.op = text_of(object, "op", where);
  node.name = text_of(object, "name", where);
  node.type = text_of(object, "type", where);
  node.ne = four_of(object, "ne", where);
  node.nb = four_of(object, "nb", where);
  node.src = sources_of(object, own_index, tensor_count, where);
  node.is_view = flag_of(object, "view", where);
  node.is_in_place = flag_of(object, "in_place", where);
  node.writes = lasting_of(object, where);
  if (const Json& written = member(object, "written", where); !written.is_null()) {
    node.was_written = flag_of(object, "written", where);
  }
  node.read_bytes = count_of(object, "read_bytes", where);
  node.write_bytes = count_of(object, "write_bytes", where);
  node.flop = count_of(object, "flop", where);
  node.device = optional_text_of(object, "device", where);
  node.variant = optional_text_of(object, "variant", where);
  return node;
}

std::vector<Unit> units_of(const Json& object, size_t node_count, const std::string& where) {
  std::vector<Unit> units;
  std::vector<int> owner(node_count, -1);
  const Json& list = list_of(object, "units", where);
  for (size_t u = 0; u < list.size(); ++u) {
    const std::string path = fmt::format("{}.units[{}]", where, u);
    Unit unit;
    unit.why = text_of(list[u], "why", path);
    for (const Json& entry : list_of(list[u], "nodes", path)) {
      const int node = index_of(entry, node_count, path + ".nodes");
      int& node_owner = owner[static_cast<size_t>(node)];
      if (node_owner >= 0) refuse(path, fmt::format("has node {}, which unit {} has", node, node_owner));
      node_owner = static_cast<int>(u);
      if (!unit.nodes.empty() && node <= unit.nodes.back()) {
        refuse(path + ".nodes", "is not in execution order");
      }
      unit.nodes.push_back(node);
    }
    if (unit.nodes.empty()) refuse(path + ".nodes", "is empty");
    units.push_back(std::move(unit));
  }
  return units;
}

Graph graph_of(const Json& object, const std::string& where) {
  Graph graph;
  graph.signature = text_of(object, "signature", where);
  const Json& tensors = list_of(object, "tensors", where);
  for (size_t i = 0; i < tensors.size(); ++i) {
    graph.tensors.push_back(tensor_of(tensors[i], fmt::format("{}.tensors[{}]", where, i)));
  }
  const Json& nodes = list_of(object, "nodes", where);
  for (size_t i = 0; i < nodes.size(); ++i) {
    graph.nodes.push_back(node_of(nodes[i], i, tensors.size(), fmt::format("{}.nodes[{}]", where, i)));
  }
  graph.units = units_of(object, nodes.size(), where);
  return graph;
}

Routing routing_of(const Json& object, const WorkloadGraph& workload, const std::string& where) {
  Routing routing;
  routing.graph = index_of(member(object, "graph", where), workload.graphs.size(), where + ".graph");
  const auto& nodes = workload.graphs[static_cast<size_t>(routing.graph)].nodes;
  routing.node = index_of(member(object, "node", where), nodes.size(), where + ".node");
  routing.layer = static_cast<int>(integer_of(member(object, "layer", where), where + ".layer"));
  routing.experts = count_of(object, "experts", where);
  routing.used = count_of(object, "used", where);
  routing.tokens = count_of(object, "tokens", where);
  for (const Json& value : list_of(object, "distinct", where)) {
    routing.distinct.push_back(integer_of(value, where + ".distinct"));
  }
  return routing;
}

WorkloadGraph workload_of(const Json& reply) {
  WorkloadGraph workload;
  workload.workload = text_of(reply, "workload", "reply");
  const Json& graphs = list_of(reply, "graphs", "reply");
  for (size_t g = 0; g < graphs.size(); ++g) {
    workload.graphs.push_back(graph_of(graphs[g], fmt::format("graphs[{}]", g)));
  }
  const Json& calls = list_of(reply, "calls", "reply");
  for (size_t i = 0; i < calls.size(); ++i) {
    workload.calls.push_back(index_of(calls[i], graphs.size(), fmt::format("calls[{}]", i)));
  }
  if (const auto routing = reply.find("routing"); routing != reply.end() && !routing->is_null()) {
    const Json& list = list_of(reply, "routing", "reply");
    for (size_t i = 0; i < list.size(); ++i) {
      workload.routing.push_back(routing_of(list[i], workload, fmt::format("routing[{}]", i)));
    }
  }
  const Json& probe = member(reply, "probe", "reply");
  workload.probe_ran = flag_of(probe, "ran", "probe");
  workload.probe_reason = optional_text_of(probe, "reason", "probe");
  return workload;
}

}  // namespace

Result<WorkloadGraph> parse_workload_graph(std::string_view json) {
  try {
    const Json reply = Json::parse(json);
    return workload_of(reply);
  } catch (const BadReply& bad) {
    return Error::failure(bad.what());
  } catch (const Json::exception& bad) {
    return Error::failure(fmt::format("graph reply: is not JSON: {}", bad.what()));
  }
}

}  // namespace opledger::core
