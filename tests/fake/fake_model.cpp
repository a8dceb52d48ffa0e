// The graph is built node by node, as an engine would; the file lists the same weights.
#include "fake_model.h"

#include <array>
#include <fstream>
#include <utility>

namespace opledger::fake {
namespace {

using nlohmann::json;
using Shape = std::array<int64_t, 4>;

Shape strides_of(const Shape& ne) {
  return {4, 4 * ne[0], 4 * ne[0] * ne[1], 4 * ne[0] * ne[1] * ne[2]};
}
int64_t count_of(const Shape& ne) {
  return ne[0] * ne[1] * ne[2] * ne[3];
}

struct Weight {
  std::string name;
  Shape ne;
};

std::vector<Weight> weights_of(int layers, int64_t vocab_tokens) {
  std::vector<Weight> all{{"token_embd.weight", {kEmbedding, vocab_tokens, 1, 1}}};
  for (int layer = 0; layer < layers; ++layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    all.push_back({prefix + "attn_norm.weight", {kEmbedding, 1, 1, 1}});
    for (const char* role : {"attn_q", "attn_k", "attn_v", "attn_output"}) {
      all.push_back({prefix + role + ".weight", {kEmbedding, kEmbedding, 1, 1}});
    }
    all.push_back({prefix + "ffn_norm.weight", {kEmbedding, 1, 1, 1}});
    all.push_back({prefix + "ffn_gate.weight", {kEmbedding, kFeedForward, 1, 1}});
    all.push_back({prefix + "ffn_up.weight", {kEmbedding, kFeedForward, 1, 1}});
    all.push_back({prefix + "ffn_down.weight", {kFeedForward, kEmbedding, 1, 1}});
  }
  all.push_back({"output_norm.weight", {kEmbedding, 1, 1, 1}});
  all.push_back({"output.weight", {kEmbedding, vocab_tokens, 1, 1}});
  return all;
}

class Builder {
 public:
  Builder(const Script& script, int64_t tokens, int64_t cells, bool is_fused)
      : script_(script), tokens_(tokens), cells_(cells), is_fused_(is_fused) {}

  FakeGraph build() {
    const int ids = tensor("inp_tokens", "input", "i32", {tokens_, 1, 1, 1});
    const int positions = tensor("inp_pos", "input", "i32", {tokens_, 1, 1, 1});
    const int embedding = weight("token_embd.weight", {kEmbedding, script_.vocab_tokens, 1, 1});
    int x = node("GET_ROWS", "inp_embd", {kEmbedding, tokens_, 1, 1}, {embedding, ids},
                 4 * kEmbedding * tokens_, 0);
    unit({x}, "token_embd", -1);
    const int layers = script_.layers - (script_.forgets_last_layer ? 1 : 0);
    for (int layer = 0; layer < layers; ++layer) x = add_layer(layer, x, positions);
    x = norm("output_norm", "output_norm.weight", x, -1);
    matmul("output", "output.weight", x, kEmbedding, script_.vocab_tokens, -1);
    return std::move(graph_);
  }

 private:
  int add_layer(int layer, int x, int positions) {
    const std::string suffix = "-" + std::to_string(layer);
    const std::string blk = "blk." + std::to_string(layer) + ".";
    const int normed = norm("attn_norm" + suffix, blk + "attn_norm.weight", x, layer);
    int q = matmul("Qcur" + suffix, blk + "attn_q.weight", normed, kEmbedding, kEmbedding, layer);
    int k = matmul("Kcur" + suffix, blk + "attn_k.weight", normed, kEmbedding, kEmbedding, layer);
    const int v = matmul("Vcur" + suffix, blk + "attn_v.weight", normed, kEmbedding, kEmbedding, layer);
    q = single("ROPE", "Qcur_rope" + suffix, {q, positions}, layer);
    k = single("ROPE", "Kcur_rope" + suffix, {k, positions}, layer);
    const int cache_k = tensor("cache_k_l" + std::to_string(layer), "kv", "f32", {kEmbedding, cells_, 1, 1});
    const int cache_v = tensor("cache_v_l" + std::to_string(layer), "kv", "f32", {kEmbedding, cells_, 1, 1});
    kv_write("k_cache" + suffix, cache_k, k, layer);
    kv_write("v_cache" + suffix, cache_v, v, layer);
    // Heads apart, as attention wants them: a view, so no work and no unit.
    const int heads = node("PERMUTE", "q" + suffix, {kEmbedding / kHeads, tokens_, kHeads, 1}, {q}, 0, 0);
    graph_.nodes[static_cast<size_t>(heads)]["view"] = true;
    int attended =
        node("FLASH_ATTN_EXT", "fattn" + suffix, {kEmbedding, tokens_, 1, 1}, {heads, cache_k, cache_v},
             4 * 2 * kEmbedding * cells_, 4 * kEmbedding * cells_ * tokens_);
    unit({attended}, "", layer);
    if (script_.copies_attention) attended = single("CONT", "kqv" + suffix, {attended}, layer);
    const int out =
        matmul("attn_out" + suffix, blk + "attn_output.weight", attended, kEmbedding, kEmbedding, layer);
    const int after = single("ADD", "ffn_inp" + suffix, {out, x}, layer);
    const int ffn = norm("ffn_norm" + suffix, blk + "ffn_norm.weight", after, layer);
    const int gate =
        matmul("ffn_gate" + suffix, blk + "ffn_gate.weight", ffn, kEmbedding, kFeedForward, layer);
    const int up = matmul("ffn_up" + suffix, blk + "ffn_up.weight", ffn, kEmbedding, kFeedForward, layer);
    const int glu = node("GLU:SWIGLU", "ffn_swiglu" + suffix, {kFeedForward, tokens_, 1, 1}, {gate, up},
                         8 * kFeedForward * tokens_, kFeedForward * tokens_);
    unit({glu}, "", layer);
    const int down =
        matmul("ffn_out" + suffix, blk + "ffn_down.weight", glu, kFeedForward, kEmbedding, layer);
    return single("ADD", "l_out" + suffix, {down, after}, layer);
  }

  int tensor(const std::string& name, const char* kind, const char* type, const Shape& ne) {
    graph_.tensors.push_back({{"name", name},
                              {"kind", kind},
                              {"type", type},
                              {"ne", ne},
                              {"nb", strides_of(ne)},
                              {"bytes", 4 * count_of(ne)},
                              {"buffer", "CPU"},
                              {"variant", nullptr}});
    return -static_cast<int>(graph_.tensors.size());
  }
  int weight(const std::string& name, const Shape& ne) { return tensor(name, "weight", "f32", ne); }

  int node(const char* op, const std::string& name, const Shape& ne, std::vector<int> sources,
           int64_t read_bytes, int64_t flop) {
    graph_.nodes.push_back({{"op", op},
                            {"name", name},
                            {"type", "f32"},
                            {"ne", ne},
                            {"nb", strides_of(ne)},
                            {"src", std::move(sources)},
                            {"view", false},
                            {"in_place", false},
                            {"writes", nullptr},
                            {"written", true},
                            {"read_bytes", read_bytes},
                            {"write_bytes", 4 * count_of(ne)},
                            {"flop", flop},
                            {"device", "CPU"},
                            {"variant", nullptr}});
    return static_cast<int>(graph_.nodes.size()) - 1;
  }

  void unit(std::vector<int> nodes, const std::string& role, int layer, int64_t weight_bytes = 0) {
    const std::string op = graph_.nodes[static_cast<size_t>(nodes.front())]["op"];
    graph_.units.push_back({std::move(nodes), role, op, layer, weight_bytes});
  }

  int single(const char* op, const std::string& name, std::vector<int> sources, int layer) {
    const int made = node(op, name, {kEmbedding, tokens_, 1, 1}, std::move(sources), 8 * kEmbedding * tokens_,
                          kEmbedding * tokens_);
    unit({made}, "", layer);
    return made;
  }

  void kv_write(const std::string& name, int cache, int row, int layer) {
    const int made = single("SET_ROWS", name, {row, cache}, layer);
    graph_.nodes[static_cast<size_t>(made)]["writes"] = "kv";
    graph_.nodes[static_cast<size_t>(made)]["flop"] = 0;
  }

  int norm(const std::string& name, const std::string& weight_name, int x, int layer) {
    const int scale = weight(weight_name, {kEmbedding, 1, 1, 1});
    const Shape ne{kEmbedding, tokens_, 1, 1};
    const int normed =
        node("RMS_NORM", "norm_" + name, ne, {x}, 4 * kEmbedding * tokens_, 2 * kEmbedding * tokens_);
    const int scaled = node("MUL", name, ne, {normed, scale}, 8 * kEmbedding * tokens_, kEmbedding * tokens_);
    if (is_fused_) graph_.nodes[static_cast<size_t>(normed)]["written"] = false;
    if (is_fused_ && !script_.splits_units) {
      unit({normed, scaled}, "", layer, 4 * kEmbedding);
    } else {
      unit({normed}, "", layer);
      unit({scaled}, "", layer, 4 * kEmbedding);
    }
    return scaled;
  }

  int matmul(const std::string& name, const std::string& weight_name, int x, int64_t in, int64_t out,
             int layer) {
    const int matrix = weight(weight_name, {in, out, 1, 1});
    const int made = node("MUL_MAT", name, {out, tokens_, 1, 1}, {matrix, x}, 4 * in * out + 4 * in * tokens_,
                          2 * in * out * tokens_);
    const size_t dot = weight_name.rfind('.');
    const size_t start = weight_name.rfind('.', dot - 1);
    unit({made},
         weight_name.substr(start == std::string::npos ? 0 : start + 1,
                            dot - (start == std::string::npos ? 0 : start + 1)),
         layer, 4 * in * out);
    return made;
  }

  const Script& script_;
  int64_t tokens_;
  int64_t cells_;
  bool is_fused_;
  FakeGraph graph_;
};

class GgufText {
 public:
  template <typename Number>
  void number(Number value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(const std::string& value) {
    number<uint64_t>(value.size());
    bytes_ += value;
  }
  void key_u32(const std::string& key, uint32_t value) {
    text(key);
    number<uint32_t>(4);
    number(value);
  }
  void pad(size_t alignment) { bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment, '\0'); }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace

FakeGraph build_graph(const Script& script, int64_t tokens, int64_t cells, bool is_fused) {
  return Builder(script, tokens, cells, is_fused).build();
}

void write_model(const std::string& path, int layers, int64_t vocab_tokens, const std::string& architecture) {
  const std::vector<Weight> weights = weights_of(layers, vocab_tokens);
  const std::vector<std::pair<std::string, uint32_t>> numbers{
      {"block_count", static_cast<uint32_t>(layers)},
      {"embedding_length", kEmbedding},
      {"feed_forward_length", kFeedForward},
      {"context_length", 4096},
      {"vocab_size", static_cast<uint32_t>(vocab_tokens)},
      {"attention.head_count", kHeads},
      {"attention.head_count_kv", kHeads},
  };
  GgufText out;
  out.number<uint32_t>(0x46554747);
  out.number<uint32_t>(3);
  out.number<uint64_t>(weights.size());
  out.number<uint64_t>(numbers.size() + 1);
  out.text("general.architecture");
  out.number<uint32_t>(8);
  out.text(architecture);
  for (const auto& [key, value] : numbers) out.key_u32(architecture + "." + key, value);
  uint64_t offset = 0;
  for (const Weight& weight : weights) {
    out.text(weight.name);
    const uint32_t dimensions = weight.ne[1] > 1 ? 2 : 1;
    out.number<uint32_t>(dimensions);
    for (uint32_t i = 0; i < dimensions; ++i) out.number<uint64_t>(static_cast<uint64_t>(weight.ne[i]));
    out.number<uint32_t>(0);
    out.number<uint64_t>(offset);
    offset += (static_cast<uint64_t>(count_of(weight.ne)) * 4 + 31) / 32 * 32;
  }
  out.pad(32);
  std::ofstream file(path, std::ios::binary);
  file << out.bytes() << std::string(offset, '\0');
}

}  // namespace opledger::fake
