// Builds graphs in tests, node by node, without JSON.
#pragma once

#include <array>
#include <initializer_list>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace opledger::core::test {

using Shape = std::array<int64_t, 4>;

class GraphBuilder {
 public:
  /// Adds a tensor; returns what Node::src calls it.
  int tensor(const std::string& name, TensorKind kind, Shape ne = {1, 1, 1, 1}, int64_t bytes = 0) {
    Tensor tensor;
    tensor.name = name;
    tensor.kind = kind;
    tensor.type = "f32";
    tensor.ne = ne;
    tensor.bytes = bytes;
    graph.tensors.push_back(tensor);
    return -static_cast<int>(graph.tensors.size());
  }
  int weight(const std::string& name, Shape ne = {1, 1, 1, 1}, int64_t bytes = 0) {
    return tensor(name, TensorKind::kWeight, ne, bytes);
  }

  int node(const std::string& op, std::vector<int> src, const std::string& name = "",
           Shape ne = {1, 1, 1, 1}) {
    Node node;
    node.op = op;
    node.name = name;
    node.type = "f32";
    node.ne = ne;
    node.src = std::move(src);
    graph.nodes.push_back(node);
    return static_cast<int>(graph.nodes.size()) - 1;
  }
  int view(int source, Shape ne = {1, 1, 1, 1}) {
    const int index = node("VIEW", {source}, "", ne);
    graph.nodes.back().is_view = true;
    return index;
  }
  int writer(const std::string& op, std::vector<int> src, Lasting writes) {
    const int index = node(op, std::move(src));
    graph.nodes.back().writes = writes;
    return index;
  }
  GraphBuilder& work(int64_t bytes, int64_t flop) {
    graph.nodes.back().read_bytes = bytes;
    graph.nodes.back().flop = flop;
    return *this;
  }

  void unit(std::initializer_list<int> nodes) { graph.units.push_back({nodes, "given"}); }
  /// Every working node that no unit has yet becomes one of its own, in order.
  void single_units() {
    std::vector<bool> is_owned(graph.nodes.size(), false);
    for (const auto& unit : graph.units) {
      for (const int node : unit.nodes) is_owned[static_cast<size_t>(node)] = true;
    }
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      if (!is_owned[i] && !graph.nodes[i].is_view) graph.units.push_back({{static_cast<int>(i)}, "single"});
    }
  }

  Graph graph;
};

inline WorkloadGraph one_call(const Graph& graph, const std::string& workload = "pp4") {
  WorkloadGraph result;
  result.workload = workload;
  result.calls = {0};
  result.graphs = {graph};
  return result;
}

}  // namespace opledger::core::test
