// Reads rows and FLOPs off a reported graph. Counts what the nodes say; whether that is right, others judge.
#include "core/model/observed_work.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/graph/sources.h"
#include "core/scopes/rules.h"

namespace opledger::core {

namespace {

bool is_product(const std::string& op) {
  return op.starts_with("MUL_MAT") || op.ends_with("UP_GATE");
}

const std::array<int64_t, 4>& shape_of(const Graph& graph, int source) {
  return source >= 0 ? graph.nodes[static_cast<size_t>(source)].ne
                     : graph.tensors[static_cast<size_t>(-1 - source)].ne;
}

class Observer {
 public:
  Observer(const WorkloadGraph& workload, const RuleSet& rules, const ModelForm& form)
      : workload_(workload), rules_(rules), form_(form) {
    for (size_t layer = 0; layer < form.layers.size(); ++layer) {
      for (const auto& projection : form.layers[layer].projections) {
        forms_[{static_cast<int>(layer), projection.role}] = &projection;
      }
    }
    forms_[{-1, kOutputRole}] = &form.output;
  }

  ObservedWork observe() {
    for (size_t g = 0; g < workload_.graphs.size(); ++g) {
      const Graph& graph = workload_.graphs[g];
      const int calls = workload_.calls_of(static_cast<int>(g));
      const Labels labels = label_nodes(rules_, graph);
      for (const Unit& unit : graph.units) {
        for (const int node : unit.nodes) add_node(graph, static_cast<size_t>(node), labels, calls);
      }
    }
    return std::move(work_);
  }

 private:
  void add_node(const Graph& graph, size_t index, const Labels& labels, int calls) {
    const Node& node = graph.nodes[index];
    if (node.is_view) return;
    add_lasting(graph, node);
    const std::string& category = labels.categories[index];
    if (category == "attention") return add_attention(graph, node, calls);
    if (is_product(node.op)) add_product(graph, node, category, calls);
  }

  void add_lasting(const Graph& graph, const Node& node) {
    if (node.writes == Lasting::kNone) return;
    for (const Root& root : roots_of(graph, node)) {
      if (root.tensor == nullptr) continue;
      const auto layer = layer_of_tensor(root.tensor->name);
      if (!layer) continue;
      if (root.tensor->kind == TensorKind::kKv) work_.kv_layers.insert(*layer);
      if (root.tensor->kind == TensorKind::kState) work_.state_layers.insert(*layer);
    }
  }

  void add_product(const Graph& graph, const Node& node, const std::string& category, int calls) {
    bool is_known = false;
    const auto weights = weights_of(graph, node);
    for (const Tensor* weight : weights) {
      const int layer = layer_of_tensor(weight->name).value_or(-1);
      const std::string role = category == "lm_head" ? kOutputRole : role_of(weight->name);
      if (add_role(layer, role, node, calls)) is_known = true;
      if (const auto parts = rules_.weight_parts.find(role);
          !is_known && parts != rules_.weight_parts.end()) {
        for (const auto& part : parts->second) is_known = add_role(layer, part, node, calls) || is_known;
      }
    }
    if (is_known) work_.counted_flop += node.flop * calls;
    if (!is_known && !weights.empty())
      work_.unknown.push_back(fmt::format("{} ({})", weights.front()->name, node.op));
  }

  bool add_role(int layer, const std::string& role, const Node& node, int calls) {
    const auto form = forms_.find({layer, role});
    if (form == forms_.end()) return false;
    // An expert product's second dimension counts the experts that a row meets.
    const int64_t rows =
        form->second->experts_used > 0 ? node.ne[2] * node.ne[3] : node.ne[1] * node.ne[2] * node.ne[3];
    work_.rows[{layer, role}] += rows * calls;
    return true;
  }

  /// Cached cells, or a copy of them. Products without a weight that read none only rotate a query or a
  /// value.
  static bool reads_cells(const Graph& graph, int source) {
    const auto is_cells = [](const Root& root) {
      return root.tensor != nullptr && root.tensor->kind == TensorKind::kKv;
    };
    const Root root = root_of(graph, source);
    if (root.node < 0) return is_cells(root);
    const auto roots = roots_of(graph, graph.nodes[static_cast<size_t>(root.node)]);
    return std::any_of(roots.begin(), roots.end(), is_cells);
  }

  void add_attention(const Graph& graph, const Node& node, int calls) {
    if (node.src.size() < 2) return;
    const bool is_flash = node.op == "FLASH_ATTN_EXT";
    if (!is_flash && !(node.op == "MUL_MAT" && reads_cells(graph, node.src.front()))) return;
    work_.counted_flop += node.flop * calls;
    const Root keys = root_of(graph, node.src[is_flash ? 1 : 0]);
    // Of the two products of attention without flash attention, the one with the keys is counted for both.
    if (keys.tensor == nullptr || keys.tensor->kind != TensorKind::kKv) return;
    if (!is_flash && !keys.tensor->name.starts_with("cache_k")) return;
    const auto layer = layer_of_tensor(keys.tensor->name);
    if (!layer) return;
    const auto& queries = shape_of(graph, node.src[is_flash ? 0 : 1]);
    const int64_t cells = shape_of(graph, node.src[is_flash ? 1 : 0])[1];
    const int64_t row_heads = queries[1] * queries[2] * queries[3];
    ObservedAttention& seen = work_.attention[*layer];
    seen.row_heads += row_heads * calls;
    seen.row_head_cells += row_heads * cells * calls;
    seen.most_cells = std::max(seen.most_cells, cells);
  }

  const WorkloadGraph& workload_;
  const RuleSet& rules_;
  const ModelForm& form_;
  std::map<std::pair<int, std::string>, const Projection*> forms_;
  ObservedWork work_;
};

}  // namespace

ObservedWork observe_work(const WorkloadGraph& workload, const RuleSet& rules, const ModelForm& form) {
  return Observer(workload, rules, form).observe();
}

}  // namespace opledger::core
