#include "engines/ggml/graph_json.h"

namespace opledger::ggml {
namespace {

using nlohmann::json;

const char* name_of(LeafKind kind) {
  switch (kind) {
    case LeafKind::kWeight:
      return "weight";
    case LeafKind::kKv:
      return "kv";
    case LeafKind::kState:
      return "state";
    case LeafKind::kInput:
      return "input";
    case LeafKind::kOther:
      break;
  }
  return "other";
}

json variant_of(const ggml_tensor* tensor) {
  if (tensor->buffer == nullptr) return nullptr;
  const std::string buffer = ggml_backend_buffer_name(tensor->buffer);
  return buffer.find("REPACK") == std::string::npos ? json(nullptr) : json("repack");
}

json leaf_json(const Leaf& leaf) {
  const ggml_tensor* t = leaf.tensor;
  return {{"name", t->name},
          {"kind", name_of(leaf.kind)},
          {"type", ggml_type_name(t->type)},
          {"ne", t->ne},
          {"nb", t->nb},
          {"bytes", ggml_nbytes(t)},
          {"buffer", t->buffer == nullptr ? "" : ggml_backend_buffer_name(t->buffer)},
          {"variant", variant_of(t)}};
}

json graph_json(const GraphModel& model) {
  json nodes = json::array();
  for (size_t i = 0; i < model.nodes.size(); ++i) {
    const NodeFacts& facts = model.nodes[i];
    const NodeLook& look = model.looks[i];
    nodes.push_back({{"op", look.op},
                     {"name", look.name},
                     {"type", look.type},
                     {"ne", look.ne},
                     {"nb", look.nb},
                     {"src", facts.sources},
                     {"view", facts.is_view},
                     {"in_place", facts.is_in_place},
                     {"writes", facts.lasting ? json(name_of(*facts.lasting)) : json(nullptr)},
                     {"written", facts.was_written ? json(*facts.was_written) : json(nullptr)},
                     {"read_bytes", facts.read_bytes},
                     {"write_bytes", facts.write_bytes},
                     {"flop", facts.flop},
                     {"device", model.device},
                     {"variant", nullptr}});
  }
  json tensors = json::array();
  for (const Leaf& leaf : model.leaves) tensors.push_back(leaf_json(leaf));
  json units = json::array();
  for (const UnitNodes& unit : model.units) units.push_back({{"nodes", unit.nodes}, {"why", unit.why}});
  return {{"signature", model.signature}, {"nodes", nodes}, {"tensors", tensors}, {"units", units}};
}

}  // namespace

json workload_json(const Workload& workload) {
  json graphs = json::array();
  for (const auto& graph : workload.graphs) graphs.push_back(graph_json(*graph));
  json routing = json::array();
  for (const RoutedNode& routed : workload.routing) {
    routing.push_back({{"graph", routed.graph},
                       {"node", routed.node},
                       {"layer", routed.layer},
                       {"experts", routed.experts},
                       {"used", routed.used},
                       {"tokens", routed.tokens},
                       {"distinct", routed.distinct}});
  }
  return {{"workload", workload.id},
          {"calls", workload.calls},
          {"graphs", graphs},
          {"probe",
           {{"ran", workload.probe_ran},
            {"reason", workload.probe_reason.empty() ? json(nullptr) : json(workload.probe_reason)}}},
          {"routing", routing}};
}

}  // namespace opledger::ggml
