// Follows views to their roots, and reads roles and layers out of names. Guesses nothing from a name that
// does not have the expected form.
#include "core/graph/sources.h"

#include <algorithm>
#include <charconv>

namespace opledger::core {

namespace {

/// Number at the start of `text`; empty when there is none or something else than `stop` follows it.
std::optional<int> leading_number(std::string_view text, std::string_view stops) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0) return std::nullopt;
  const auto rest = text.substr(static_cast<size_t>(end - text.data()));
  if (!rest.empty() && stops.find(rest.front()) == std::string_view::npos) return std::nullopt;
  return value;
}

constexpr std::string_view kBlockPrefix = "blk.";

}  // namespace

Root root_of(const Graph& graph, int source) {
  while (source >= 0) {
    const Node& node = graph.nodes[static_cast<size_t>(source)];
    if (!node.is_view || node.src.empty()) return {source, nullptr};
    source = node.src.front();
  }
  return {-1, &graph.tensors[static_cast<size_t>(-1 - source)]};
}

std::vector<Root> roots_of(const Graph& graph, const Node& node) {
  std::vector<Root> roots;
  roots.reserve(node.src.size());
  for (const int source : node.src) roots.push_back(root_of(graph, source));
  return roots;
}

std::vector<const Tensor*> weights_of(const Graph& graph, const Node& node) {
  std::vector<const Tensor*> weights;
  for (const Root& root : roots_of(graph, node)) {
    if (root.tensor == nullptr || root.tensor->kind != TensorKind::kWeight) continue;
    if (std::find(weights.begin(), weights.end(), root.tensor) == weights.end()) {
      weights.push_back(root.tensor);
    }
  }
  return weights;
}

std::string role_of(std::string_view weight_name) {
  std::string_view role = weight_name;
  if (role.starts_with(kBlockPrefix)) {
    const size_t dot = role.find('.', kBlockPrefix.size());
    if (dot != std::string_view::npos) role.remove_prefix(dot + 1);
  }
  constexpr std::string_view kSuffix = ".weight";
  if (role.size() > kSuffix.size() && role.ends_with(kSuffix)) role.remove_suffix(kSuffix.size());
  return std::string(role);
}

std::optional<int> layer_of_tensor(std::string_view name) {
  if (name.starts_with(kBlockPrefix)) return leading_number(name.substr(kBlockPrefix.size()), ".");
  const size_t mark = name.rfind("_l");
  if (mark == std::string_view::npos) return std::nullopt;
  return leading_number(name.substr(mark + 2), " ");
}

std::optional<int> layer_of_node(std::string_view name) {
  const std::string_view first_word = name.substr(0, name.find(' '));
  const size_t dash = first_word.rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  return leading_number(first_word.substr(dash + 1), "");
}

}  // namespace opledger::core
