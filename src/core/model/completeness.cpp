// Judges whether a graph is all of the work: nodes in units, weights of the file read, rows and FLOPs against
// the closed form. Every difference is a line; none is averaged away.
#include "core/model/completeness.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>

#include "core/graph/sources.h"
#include "core/model/closed_form.h"
#include "core/model/observed_work.h"
#include "core/scopes/rules.h"

namespace opledger::core {

namespace {

/// More lines than this say nothing new: a missing call shows in every layer.
constexpr size_t kMostProblems = 12;

class Judge {
 public:
  Judge(const WorkloadGraph& workload, const RuleSet& rules, const ModelFacts& facts, const PassShape& shape)
      : workload_(workload), rules_(rules), facts_(facts), shape_(shape) {}

  Completeness judge() {
    check_units();
    check_categories();
    check_weights();
    const auto form = model_form(facts_);
    if (form) {
      check_form(*form);
    } else {
      result_.reason = form.error().message;
    }
    // What was found wrong without a closed form is wrong with one, too.
    result_.ran = form.is_ok() || !result_.problems.empty();
    result_.complete = form.is_ok() && result_.problems.empty();
    if (result_.problems.size() > kMostProblems) {
      const size_t more = result_.problems.size() - kMostProblems;
      result_.problems.resize(kMostProblems);
      result_.problems.push_back(fmt::format("and {} more", more));
    }
    return std::move(result_);
  }

 private:
  template <typename... Args>
  void problem(fmt::format_string<Args...> format, Args&&... args) {
    result_.problems.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  void check_units() {
    for (size_t g = 0; g < workload_.graphs.size(); ++g) {
      const Graph& graph = workload_.graphs[g];
      std::vector<int> owners(graph.nodes.size(), 0);
      for (const Unit& unit : graph.units) {
        for (const int node : unit.nodes) ++owners[static_cast<size_t>(node)];
      }
      result_.units += static_cast<int64_t>(graph.units.size());
      for (size_t i = 0; i < graph.nodes.size(); ++i) {
        if (graph.nodes[i].is_view) continue;
        ++result_.working_nodes;
        if (owners[i] == 1) continue;
        problem("node {} of graph {} ({} {}) is in {} units", i, g, graph.nodes[i].op, graph.nodes[i].name,
                owners[i]);
      }
    }
    if (workload_.calls.empty()) problem("the pass has no graph call");
  }

  /// Work that no rule names is on no row that means anything.
  void check_categories() {
    std::map<std::string, int> unsorted;
    for (const Graph& graph : workload_.graphs) {
      const std::vector<std::string> categories = categories_of(rules_, graph);
      for (size_t i = 0; i < categories.size(); ++i) {
        if (categories[i] == kUnsorted) ++unsorted[graph.nodes[i].op];
      }
    }
    for (const auto& [op, count] : unsorted)
      problem("{} nodes of op {} are in no category (unsorted)", count, op);
  }

  void check_weights() {
    std::map<std::string, const Tensor*> read;
    for (const Graph& graph : workload_.graphs) {
      for (const Unit& unit : graph.units) {
        for (const int node : unit.nodes) {
          for (const Tensor* weight : weights_of(graph, graph.nodes[static_cast<size_t>(node)])) {
            read.emplace(weight->name, weight);
          }
        }
      }
    }
    result_.file_weight_bytes = facts_.tensor_bytes();
    for (const auto& [name, weight] : read) check_read_weight(*weight);
    for (const auto& [role, count] : merged_) {
      result_.notes.push_back(fmt::format("{} weights {} were made of the file's {}", count, role,
                                          fmt::join(rules_.weight_parts.at(role), ", ")));
    }
    for (const ModelTensor& tensor : facts_.tensors) {
      if (known_read_.contains(tensor.name)) {
        result_.read_weight_bytes += tensor.bytes;
      } else {
        list_unread(tensor);
      }
    }
    if (facts_.tensor("output.weight") == nullptr && known_read_.contains("token_embd.weight")) {
      result_.notes.emplace_back("the output projection reads token_embd.weight (tied)");
    }
  }

  void check_read_weight(const Tensor& weight) {
    if (const ModelTensor* own = facts_.tensor(weight.name)) {
      known_read_.insert(own->name);
      if (own->bytes != weight.bytes) {
        problem("weight {} has {} bytes in the engine and {} in the file", weight.name, weight.bytes,
                own->bytes);
      }
      return;
    }
    const auto parts = rules_.weight_parts.find(role_of(weight.name));
    int64_t bytes = 0;
    if (parts != rules_.weight_parts.end()) {
      for (const auto& part : parts->second) bytes += read_part(weight, part);
    }
    if (bytes != weight.bytes || bytes == 0) {
      problem("weight {} is read but is not in the file, nor made of weights that are", weight.name);
      return;
    }
    ++merged_[parts->first];
  }

  /// Bytes of the file's tensor that `weight` was made of for role `part`; 0 when the file has none.
  int64_t read_part(const Tensor& weight, const std::string& part) {
    const std::string_view suffix = part.ends_with(".bias") ? "" : ".weight";
    const auto layer = layer_of_tensor(weight.name);
    if (!layer) return 0;
    const ModelTensor* tensor = facts_.tensor(fmt::format("blk.{}.{}{}", *layer, part, suffix));
    if (tensor == nullptr) return 0;
    known_read_.insert(tensor->name);
    return tensor->bytes;
  }

  void list_unread(const ModelTensor& tensor) {
    const auto layer = layer_of_tensor(tensor.name);
    const int64_t blocks = facts_.count("block_count").value_or(0);
    const int64_t executed = blocks - facts_.count("nextn_predict_layers").value_or(0);
    const bool is_named_by_layer = tensor.name.starts_with("blk.");
    if (is_named_by_layer && layer && *layer >= executed && *layer < blocks) {
      result_.unread_tensors.push_back(tensor.name + ": its layer only predicts further tokens");
    } else if (role_of(tensor.name).starts_with("rope_f")) {
      result_.unread_tensors.push_back(tensor.name +
                                       ": rope factors are read only at the context they are for");
    } else {
      result_.unread_tensors.push_back(tensor.name);
      problem("weight {} of the file ({} bytes) is read by no unit", tensor.name, tensor.bytes);
    }
  }

  void check_form(const ModelForm& form) {
    const ObservedWork work = observe_work(workload_, rules_, form);
    for (const auto& unknown : work.unknown) problem("{} is a product that the closed form lacks", unknown);
    check_output_rows(work);
    int64_t expected_flop = form.output.flop_per_row() * result_.output_rows;
    for (size_t layer = 0; layer < form.layers.size(); ++layer) {
      for (const auto& projection : form.layers[layer].projections) {
        const auto found = work.rows.find({static_cast<int>(layer), projection.role});
        const int64_t rows = found == work.rows.end() ? 0 : found->second;
        check_rows(layer, projection.role, rows, layer + 1 == form.layers.size());
        check_shape(layer, projection);
        expected_flop += projection.flop_per_row() * rows;
      }
      expected_flop += check_mixer(form, static_cast<int>(layer), work);
    }
    compare_flop(expected_flop, work.counted_flop);
  }

  void check_output_rows(const ObservedWork& work) {
    const auto found = work.rows.find({-1, kOutputRole});
    result_.output_rows = found == work.rows.end() ? 0 : found->second;
    if (result_.output_rows < 1) problem("no node multiplies with the output weight");
    if (result_.output_rows > shape_.tokens) {
      problem("{} rows of logits for {} tokens", result_.output_rows, shape_.tokens);
    }
  }

  void check_rows(size_t layer, const std::string& role, int64_t rows, bool is_last) {
    if (rows == shape_.tokens) return;
    // Engines drop the rows that give no logits somewhere in the last layer, each at its own place.
    if (is_last && rows >= result_.output_rows && rows < shape_.tokens) return;
    problem("layer {}: {} meets {} rows, expected {}", layer, role, rows, shape_.tokens);
  }

  /// The file's tensor against the width that its metadata gives; silent where the file merged the tensor.
  void check_shape(size_t layer, const Projection& projection) {
    const ModelTensor* tensor = facts_.tensor(fmt::format("blk.{}.{}.weight", layer, projection.role));
    if (tensor == nullptr) return;
    if (tensor->ne[0] == projection.columns && tensor->ne[1] == projection.outputs) return;
    problem("{} is {} x {}, the metadata says {} x {}", tensor->name, tensor->ne[0], tensor->ne[1],
            projection.columns, projection.outputs);
  }

  /// Checks a layer's mixer, and returns the FLOPs that its full attention needs over the cells it was seen
  /// to use.
  int64_t check_mixer(const ModelForm& form, int layer, const ObservedWork& work) {
    if (form.layers[static_cast<size_t>(layer)].mixer == Mixer::kLinearAttention) {
      ++result_.linear_attention_layers;
      if (!work.state_layers.contains(layer)) problem("layer {}: nothing writes its recurrent state", layer);
      if (work.attention.contains(layer)) problem("layer {}: attends, but should be linear", layer);
      return 0;
    }
    const auto found = work.attention.find(layer);
    if (!work.kv_layers.contains(layer)) problem("layer {}: nothing writes its KV cells", layer);
    if (found == work.attention.end()) {
      problem("layer {}: no attention over its KV cells", layer);
      return 0;
    }
    ++result_.attention_layers;
    const ObservedAttention& seen = found->second;
    if (seen.row_heads != shape_.tokens * form.query_heads) {
      problem("layer {}: attention of {} rows x heads, expected {}", layer, seen.row_heads,
              shape_.tokens * form.query_heads);
    }
    // A sliding window holds fewer cells than there are tokens.
    if (!facts_.count("attention.sliding_window") && seen.most_cells < shape_.depth_tokens + shape_.tokens) {
      problem("layer {}: attention over {} cells, {} tokens are cached", layer, seen.most_cells,
              shape_.depth_tokens + shape_.tokens);
    }
    return 2 * (form.key_length + form.value_length) * seen.row_head_cells;
  }

  void compare_flop(int64_t expected, int64_t counted) {
    result_.expected_flop = expected;
    result_.counted_flop = counted;
    if (expected <= 0) return problem("the closed form gives no FLOPs");
    const double ratio = static_cast<double>(counted) / static_cast<double>(expected);
    result_.flop_ratio = ratio;
    if (std::abs(ratio - 1) > kFlopToleranceRatio) {
      problem("the adapter counts {:.4f} of the FLOPs that the closed form gives", ratio);
    }
  }

  const WorkloadGraph& workload_;
  const RuleSet& rules_;
  const ModelFacts& facts_;
  PassShape shape_;
  std::set<std::string> known_read_;
  std::map<std::string, int> merged_;  ///< role of a weight that the engine merged -> how many
  Completeness result_;
};

}  // namespace

Completeness check_complete(const WorkloadGraph& workload, const RuleSet& rules, const ModelFacts& facts,
                            const PassShape& shape) {
  return Judge(workload, rules, facts, shape).judge();
}

}  // namespace opledger::core
