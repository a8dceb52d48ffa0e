// Merges what cannot be told apart. A unit is replayed and timed whole, so where one unit of any input spans
// two keys and neither is minor, the two become one scope on both sides and in every workload.
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <set>

#include "core/scopes/row_keys.h"
#include "core/scopes/rules.h"
#include "core/scopes/scopes.h"

namespace opledger::core {

namespace {

/// Union-find over keys.
class KeySets {
 public:
  int index_of(const std::string& key) {
    const auto [found, is_new] = index_.try_emplace(key, static_cast<int>(keys_.size()));
    if (is_new) {
      parent_.push_back(found->second);
      keys_.push_back(key);
    }
    return found->second;
  }

  int root_of(int key) {
    while (parent_[static_cast<size_t>(key)] != key) {
      auto& parent = parent_[static_cast<size_t>(key)];
      parent = parent_[static_cast<size_t>(parent)];
      key = parent;
    }
    return key;
  }

  /// True when the two were apart before.
  bool join(int a, int b) {
    const int root_a = root_of(a);
    const int root_b = root_of(b);
    if (root_a == root_b) return false;
    parent_[static_cast<size_t>(std::max(root_a, root_b))] = std::min(root_a, root_b);
    return true;
  }

  [[nodiscard]] const std::vector<std::string>& keys() const { return keys_; }

 private:
  std::map<std::string, int> index_;
  std::vector<int> parent_;
  std::vector<std::string> keys_;
};

struct Work {
  int64_t bytes = 0;
  int64_t flop = 0;

  Work& operator+=(const Work& other) {
    bytes += other.bytes;
    flop += other.flop;
    return *this;
  }
};

/// What one unit holds of each key.
struct UnitWork {
  std::map<std::string, Work> by_key;
  Work total;
};

/// What swallowing happened, for one pair of keys: the worst case is worth a note, not every unit.
struct Swallowed {
  int units = 0;
  double largest_share_ratio = 0;
  bool is_by_flop = false;
};

UnitWork work_of(const Graph& graph, const Unit& unit, const NodeKeys& keys) {
  UnitWork work;
  for (const int index : unit.nodes) {
    const auto i = static_cast<size_t>(index);
    if (graph.nodes[i].is_view) continue;
    const Node& node = graph.nodes[i];
    const Work own{node.read_bytes + node.write_bytes, node.flop};
    // A node with several keys counts fully under each: nothing says how its work divides.
    for (const auto& key : keys.keys[i]) work.by_key[key] += own;
    work.total += own;
  }
  return work;
}

class Scoper {
 public:
  Scoper(const std::vector<ScopedInput>& inputs, RowKind rows) : inputs_(inputs), rows_(rows) {}

  Result<Scoping> scope() {
    unit_key_.resize(inputs_.size());
    for (size_t input = 0; input < inputs_.size(); ++input) {
      const auto& graphs = inputs_[input].graph->graphs;
      for (size_t g = 0; g < graphs.size(); ++g) {
        if (const Status status = add_graph(input, g); !status) return status.error();
      }
    }
    return collect();
  }

 private:
  [[nodiscard]] std::string label(size_t input) const {
    const auto& given = inputs_[input].label;
    return fmt::format("{} {}", given.empty() ? fmt::format("input {}", input) : given,
                       inputs_[input].graph->workload);
  }

  Status add_graph(size_t input, size_t g) {
    const Graph& graph = inputs_[input].graph->graphs[g];
    const NodeKeys keys = row_keys(*inputs_[input].rules, graph, rows_);
    note_nodes(*inputs_[input].rules, graph, keys);
    for (size_t u = 0; u < graph.units.size(); ++u) {
      const UnitWork work = work_of(graph, graph.units[u], keys);
      if (work.by_key.empty()) {
        return Error::failure(fmt::format("graph of {}: unit [{}, {}] holds only views, so it does no work",
                                          label(input), g, u));
      }
      unit_key_[input].push_back(place(work, fmt::format("unit [{}, {}] of {}", g, u, label(input)),
                                       graph.nodes[static_cast<size_t>(graph.units[u].nodes.front())].op));
    }
    return {};
  }

  /// Joins what the unit spans, and returns the key that stands for it.
  int place(const UnitWork& work, const std::string& unit_name, const std::string& first_op) {
    const bool is_by_flop =
        static_cast<double>(work.total.flop) > kRidgeFlopPerByte * static_cast<double>(work.total.bytes);
    const auto amount = [&](const Work& part) { return is_by_flop ? part.flop : part.bytes; };
    const auto dominant =
        std::max_element(work.by_key.begin(), work.by_key.end(),
                         [&](const auto& a, const auto& b) { return amount(a.second) < amount(b.second); });
    const int key = sets_.index_of(dominant->first);
    const auto total = static_cast<double>(amount(work.total));
    for (const auto& [other, part] : work.by_key) {
      if (other == dominant->first) continue;
      const double share_ratio = total > 0 ? static_cast<double>(amount(part)) / total : 1.0;
      if (share_ratio < kMinorShareRatio) {
        Swallowed& swallowed = swallowed_[{dominant->first, other}];
        ++swallowed.units;
        swallowed.largest_share_ratio = std::max(swallowed.largest_share_ratio, share_ratio);
        swallowed.is_by_flop = is_by_flop;
      } else if (sets_.join(key, sets_.index_of(other))) {
        merges_.push_back({key, fmt::format("{} and {} are one scope: {} ({}...) spans both",
                                            shown(dominant->first), shown(other), unit_name, first_op)});
      }
    }
    return key;
  }

  /// Remembers what the notes and the category lists of scopes need.
  void note_nodes(const RuleSet& rules, const Graph& graph, const NodeKeys& keys) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      for (const auto& key : keys.keys[i]) {
        // A stage's parts are worth listing by category; other rows list their own keys.
        const bool is_stage = key.front() == kStageMark;
        parts_[key].insert(is_stage ? keys.labels.categories[i] : key);
        if (is_stage) stage_why_.try_emplace(key, rules.stages.at(key.substr(1)));
      }
      if (keys.labels.categories[i] == kUnsorted) ++unsorted_ops_[graph.nodes[i].op];
    }
  }

  static std::string shown(const std::string& key) { return key.front() == kStageMark ? key.substr(1) : key; }

  /// A stage alone has its own name; anything merged is named by all its parts.
  Scope scope_of(const std::vector<std::string>& keys) {
    std::set<std::string> parts;
    for (const auto& key : keys) parts.insert(parts_[key].begin(), parts_[key].end());
    Scope scope;
    scope.categories.assign(parts.begin(), parts.end());
    if (keys.size() == 1 && keys.front().front() == kStageMark) {
      scope.name = shown(keys.front());
    } else {
      std::set<std::string> names;
      for (const auto& key : keys) names.insert(shown(key));
      scope.name = fmt::format("{}", fmt::join(names, "+"));
    }
    for (const auto& key : keys) add_key_notes(key, scope.notes);
    return scope;
  }

  void add_key_notes(const std::string& key, std::vector<std::string>& notes) const {
    if (const auto why = stage_why_.find(key); why != stage_why_.end()) {
      notes.push_back(fmt::format("stage {}: {}", shown(key), why->second));
    }
    if (key == kUnsorted) {
      std::vector<std::string> ops;
      for (const auto& [op, count] : unsorted_ops_) ops.push_back(fmt::format("{} ({})", op, count));
      notes.push_back(fmt::format("no rule for {}", fmt::join(ops, ", ")));
    }
    for (const auto& [pair, swallowed] : swallowed_) {
      if (pair.first != key) continue;
      notes.push_back(fmt::format("{} units hold up to {:.1f}% of their {} in {}, counted here",
                                  swallowed.units, 100 * swallowed.largest_share_ratio,
                                  swallowed.is_by_flop ? "FLOPs" : "bytes", shown(pair.second)));
    }
  }

  Result<Scoping> collect() {
    std::map<int, std::vector<std::string>> members;
    std::set<int> used;
    for (const auto& input : unit_key_) {
      for (const int key : input) used.insert(sets_.root_of(key));
    }
    for (size_t key = 0; key < sets_.keys().size(); ++key) {
      members[sets_.root_of(static_cast<int>(key))].push_back(sets_.keys()[key]);
    }
    std::vector<std::pair<Scope, int>> named;
    for (const int root : used) {
      std::sort(members[root].begin(), members[root].end());
      named.emplace_back(scope_of(members[root]), root);
      for (const auto& [key, note] : merges_) {
        if (sets_.root_of(key) == root) named.back().first.notes.push_back(note);
      }
    }
    separate_names(named);
    std::sort(named.begin(), named.end(),
              [](const auto& a, const auto& b) { return a.first.name < b.first.name; });
    std::map<int, int> place_of_root;
    Scoping scoping;
    for (auto& [scope, root] : named) {
      place_of_root[root] = static_cast<int>(scoping.scopes.size());
      scoping.scopes.push_back(std::move(scope));
    }
    for (const auto& input : unit_key_) {
      auto& places = scoping.unit_scope.emplace_back();
      for (const int key : input) places.push_back(place_of_root[sets_.root_of(key)]);
    }
    return scoping;
  }

  /// A stage may be called what one category is called; a scope's name must be its own.
  static void separate_names(std::vector<std::pair<Scope, int>>& named) {
    std::set<std::string> taken;
    for (auto& [scope, root] : named) {
      if (!taken.insert(scope.name).second) scope.name = fmt::format("{}", fmt::join(scope.categories, "+"));
      taken.insert(scope.name);
    }
  }

  struct Merge {
    int key;
    std::string note;
  };

  const std::vector<ScopedInput>& inputs_;
  RowKind rows_;
  KeySets sets_;
  std::vector<std::vector<int>> unit_key_;
  std::vector<Merge> merges_;
  std::map<std::pair<std::string, std::string>, Swallowed> swallowed_;
  std::map<std::string, std::set<std::string>> parts_;
  std::map<std::string, std::string> stage_why_;
  std::map<std::string, int> unsorted_ops_;
};

}  // namespace

Result<Scoping> scope_units(const std::vector<ScopedInput>& inputs, RowKind rows) {
  return Scoper(inputs, rows).scope();
}

}  // namespace opledger::core
