// The reader of graph replies, on a reply written by hand from docs/protocol.md.
#include <gtest/gtest.h>
#include <string>

#include "core/graph/graph.h"

namespace opledger::core {
namespace {

const std::string kReply = R"({"workload": "tg2@4", "calls": [0, 0], "graphs": [{"signature": "00ff",
  "tensors": [{"name": "blk.0.attn_q.weight", "kind": "weight", "type": "q4_1", "ne": [64,32,1,1],
               "nb": [20,40,1280,1280], "bytes": 1280, "buffer": "CPU", "variant": null},
              {"name": "cache_k_l0", "kind": "kv", "type": "f16", "ne": [32,8,1,1], "nb": [2,64,512,512],
               "bytes": 512, "buffer": "CPU", "variant": "x"}],
  "nodes": [{"op": "MUL_MAT", "name": "Qcur-0", "type": "f32", "ne": [32,1,1,1], "nb": [4,128,128,128],
             "src": [-1], "view": false, "in_place": false, "writes": null, "written": true,
             "read_bytes": 1536, "write_bytes": 128, "flop": 4096, "device": "CPU", "variant": "repack"},
            {"op": "VIEW", "name": "v", "type": "f32", "ne": [32,1,1,1], "nb": [4,128,128,128],
             "src": [0], "view": true, "in_place": false, "writes": null, "written": null,
             "read_bytes": 0, "write_bytes": 0, "flop": 0, "device": "CPU", "variant": null},
            {"op": "CPY", "name": "k", "type": "f16", "ne": [32,1,1,1], "nb": [2,64,64,64],
             "src": [1, -2], "view": false, "in_place": true, "writes": "kv", "written": null,
             "read_bytes": 128, "write_bytes": 64, "flop": 0, "device": "CPU", "variant": null}],
  "units": [{"nodes": [0], "why": "single"}, {"nodes": [2], "why": "single"}]}],
  "probe": {"ran": false, "reason": "not asked"},
  "routing": [{"graph": 0, "node": 0, "layer": 3, "experts": 8, "used": 2, "tokens": 1, "distinct": [2, 2]}]})";

/// The reply with its one occurrence of `from` replaced.
std::string changed(const std::string& from, const std::string& to) {
  std::string reply = kReply;
  const size_t place = reply.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return reply.replace(place, from.size(), to);
}

void expect_refused(const std::string& reply, const std::string& message_part) {
  const auto result = parse_workload_graph(reply);
  ASSERT_FALSE(result) << message_part;
  EXPECT_EQ(result.error().kind, Error::Kind::kFailure);
  EXPECT_NE(result.error().message.find(message_part), std::string::npos) << result.error().message;
}

TEST(WorkloadGraph, HoldsWhatTheReplySays) {
  const auto result = parse_workload_graph(kReply);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->workload, "tg2@4");
  EXPECT_EQ(result->calls_of(0), 2);
  EXPECT_EQ(result->unit_count(), 2U);
  EXPECT_FALSE(result->probe_ran);
  EXPECT_EQ(result->probe_reason, "not asked");
  const Graph& graph = result->graphs.at(0);
  EXPECT_EQ(graph.signature, "00ff");
  EXPECT_EQ(graph.tensors.at(0).ne[0], 64);
  EXPECT_EQ(graph.tensors.at(0).variant, "");
  EXPECT_EQ(graph.tensors.at(1).kind, TensorKind::kKv);
  EXPECT_EQ(graph.nodes.at(0).flop, 4096);
  EXPECT_EQ(graph.nodes.at(0).was_written, true);
  EXPECT_EQ(graph.nodes.at(1).was_written, std::nullopt);
  EXPECT_TRUE(graph.nodes.at(1).is_view);
  EXPECT_EQ(graph.nodes.at(2).writes, Lasting::kKv);
  EXPECT_TRUE(graph.nodes.at(2).is_in_place);
  ASSERT_EQ(result->routing.size(), 1U);
  EXPECT_EQ(result->routing[0].layer, 3);
  EXPECT_EQ(result->routing[0].distinct, (std::vector<int64_t>{2, 2}));
}

TEST(WorkloadGraph, MayLackRouting) {
  const size_t start = kReply.find(",\n  \"routing\"");
  const auto result = parse_workload_graph(kReply.substr(0, start) + "}");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->routing.empty());
}

TEST(WorkloadGraph, IsRefusedWhenASourceDoesNotComeBefore) {
  expect_refused(changed("\"src\": [0]", "\"src\": [1]"), "graphs[0].nodes[1].src[0] is node 1");
  expect_refused(changed("\"src\": [0]", "\"src\": [2]"), "graphs[0].nodes[1].src[0] is node 2");
}

TEST(WorkloadGraph, IsRefusedWhenASourceIsNoTensor) {
  expect_refused(changed("\"src\": [1, -2]", "\"src\": [1, -3]"), "graphs[0].nodes[2].src[1] is -3");
}

TEST(WorkloadGraph, IsRefusedWhenAUnitPointsNowhere) {
  expect_refused(changed("\"nodes\": [2]", "\"nodes\": [3]"),
                 "graphs[0].units[1].nodes is 3, outside 0 to 2");
  expect_refused(changed("\"nodes\": [2]", "\"nodes\": [-1]"), "graphs[0].units[1].nodes is -1");
  expect_refused(changed("\"nodes\": [2]", "\"nodes\": []"), "graphs[0].units[1].nodes is empty");
}

TEST(WorkloadGraph, IsRefusedWhenTwoUnitsShareANode) {
  expect_refused(changed("\"nodes\": [2]", "\"nodes\": [0]"),
                 "graphs[0].units[1] has node 0, which unit 0 has");
}

TEST(WorkloadGraph, IsRefusedWhenAUnitIsNotInExecutionOrder) {
  expect_refused(changed("\"nodes\": [2]", "\"nodes\": [2, 1]"),
                 "graphs[0].units[1].nodes is not in execution order");
}

TEST(WorkloadGraph, IsRefusedWhenACallNamesNoGraph) {
  expect_refused(changed("\"calls\": [0, 0]", "\"calls\": [0, 1]"), "calls[1] is 1, outside 0 to 0");
}

TEST(WorkloadGraph, IsRefusedWhenARoutedNodeDoesNotExist) {
  expect_refused(changed("\"node\": 0", "\"node\": 3"), "routing[0].node is 3");
}

TEST(WorkloadGraph, IsRefusedWithTheKeyThatIsMissingOrMistyped) {
  expect_refused(changed("\"flop\": 4096", "\"flops\": 4096"), "graphs[0].nodes[0].flop is missing");
  expect_refused(changed("\"flop\": 4096", "\"flop\": 40.5"), "graphs[0].nodes[0].flop is not an integer");
  expect_refused(changed("\"bytes\": 1280", "\"bytes\": -1"), "graphs[0].tensors[0].bytes is negative");
  expect_refused(changed("[64,32,1,1]", "[64,32,1]"), "graphs[0].tensors[0].ne does not have four entries");
  expect_refused(changed("\"kind\": \"kv\"", "\"kind\": \"kvs\""), "graphs[0].tensors[1].kind is \"kvs\"");
  expect_refused(changed("\"writes\": \"kv\"", "\"writes\": \"k\""), "graphs[0].nodes[2].writes");
}

TEST(WorkloadGraph, IsRefusedWhenItIsNoJson) {
  expect_refused("{\"workload\": ", "is not JSON");
  expect_refused("[]", "reply is not an object");
}

}  // namespace
}  // namespace opledger::core
