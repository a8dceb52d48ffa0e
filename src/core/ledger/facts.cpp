// Compares the two sides' facts, key by key.
#include "core/ledger/facts.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>

#include "core/ledger/precision.h"

namespace opledger::core::detail {

namespace {

using Json = nlohmann::json;
using TextMap = std::map<std::string, std::string>;

constexpr size_t kMostNames = 12;

std::vector<std::string> missing_from(const std::vector<std::string>& those,
                                      const std::vector<std::string>& have) {
  std::vector<std::string> missing;
  for (const std::string& name : those) {
    if (std::find(have.begin(), have.end(), name) == have.end()) missing.push_back(name);
  }
  return missing;
}

std::string listed(std::vector<std::string> names) {
  const size_t all = names.size();
  if (all > kMostNames) names.resize(kMostNames);
  std::string text = fmt::format("{}", fmt::join(names, " "));
  return all > kMostNames ? text + fmt::format(" and {} more", all - kMostNames) : text;
}

// "AVX = 1 | AVX2 = 1 | ..." as a map; empty for text of any other form.
TextMap feature_list(const std::string& text) {
  TextMap features;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('|', at), text.size());
    const std::string item = text.substr(at, end - at);
    at = end + 1;
    const size_t equals = item.find(" = ");
    if (equals == std::string::npos) continue;
    const size_t name_start = item.find_last_of(' ', equals - 1) + 1;
    features[item.substr(name_start, equals - name_start)] =
        item.substr(equals + 3, item.find_last_not_of(' ') - equals - 2);
  }
  return features;
}

std::string only_on_one_side(const std::string& what, const std::string& name, const TextMap& own,
                             const TextMap& other) {
  std::vector<std::string> items;
  for (const auto& [key, value] : own) {
    if (other.count(key) == 0) items.push_back(fmt::format("{}={}", key, value));
  }
  return items.empty() ? "" : fmt::format("{} of {} only: {}", what, name, fmt::join(items, " "));
}

// One line per key whose values differ, and one per side for the keys that only it has.
void add_map_differences(const std::string& what, const std::array<std::string, 2>& names, const TextMap& a,
                         const TextMap& b, std::vector<std::string>& out) {
  for (const auto& [key, value_a] : a) {
    const auto in_b = b.find(key);
    if (in_b == b.end() || in_b->second == value_a) continue;
    const TextMap features_a = feature_list(value_a);
    const TextMap features_b = feature_list(in_b->second);
    if (features_a.size() < 2 || features_b.size() < 2) {
      out.push_back(fmt::format("{} {}: {} {}, {} {}", what, key, names[0], value_a, names[1], in_b->second));
      continue;
    }
    // Engines list different features; only those that both know can be said to differ.
    for (const auto& [feature, value] : features_a) {
      const auto other = features_b.find(feature);
      if (other != features_b.end() && other->second != value)
        out.push_back(fmt::format("{} {} {}: {} {}, {} {}", what, key, feature, names[0], value, names[1],
                                  other->second));
    }
  }
  for (const std::string& line :
       {only_on_one_side(what, names[0], a, b), only_on_one_side(what, names[1], b, a)}) {
    if (!line.empty()) out.push_back(line);
  }
}

void add_isa(const std::array<std::string, 2>& names, const EngineFacts& a, const EngineFacts& b,
             std::vector<std::string>& out) {
  const std::vector<std::string> only_a = missing_from(a.isa, b.isa);
  const std::vector<std::string> only_b = missing_from(b.isa, a.isa);
  if (!only_a.empty())
    out.push_back(
        fmt::format("instruction set: {} is built for {}, {} is not", names[0], listed(only_a), names[1]));
  if (!only_b.empty())
    out.push_back(
        fmt::format("instruction set: {} is built for {}, {} is not", names[1], listed(only_b), names[0]));
}

std::string type_counts(const ModelFacts& facts) {
  std::map<std::string, int> counts;
  for (const ModelTensor& tensor : facts.tensors) ++counts[tensor.type];
  std::vector<std::string> texts;
  texts.reserve(counts.size());
  for (const auto& [type, count] : counts) texts.push_back(fmt::format("{} x {}", count, type));
  return fmt::format("{}", fmt::join(texts, " + "));
}

void add_models(const std::array<std::string, 2>& names, const ModelLine& a, const ModelLine& b,
                std::vector<std::string>& out) {
  if (a.path != b.path || a.bytes != b.bytes)
    out.push_back(fmt::format("model file: {} {} ({} bytes), {} {} ({} bytes)", names[0], a.path, a.bytes,
                              names[1], b.path, b.bytes));
  if (const std::string x = type_counts(a.facts), y = type_counts(b.facts); x != y)
    out.push_back(fmt::format("tensor types: {} {}, {} {}", names[0], x, names[1], y));
}

std::string threads_text(const EngineFacts& engine) {
  return engine.threads ? std::to_string(*engine.threads) : "unknown";
}

bool is_mixture(const PairSamples& pair) {
  return std::any_of(pair.scopes.begin(), pair.scopes.end(), [](const ScopeFigures& figures) {
    const auto& categories = figures.scope->categories;
    return std::find(categories.begin(), categories.end(), "moe_experts") != categories.end();
  });
}

void add_excluded(const PairSamples& pair, std::vector<std::string>& out) {
  for (const Side side : kBothSides) {
    const Excluded& excluded = pair.excluded(side);
    if (excluded.units == 0) continue;
    out.push_back(
        fmt::format("{}: {} units could not be measured without changing the result ({:.2f}% of nodes, "
                    "{:.2f}% of bytes, {:.2f}% "
                    "of FLOPs): {}",
                    pair.name(side), excluded.units, 100 * excluded.nodes_ratio, 100 * excluded.bytes_ratio,
                    100 * excluded.flop_ratio, fmt::join(excluded.texts, "; ")));
  }
}

// What happened to the whole session; what befell one row stands with its checks.
void add_events(const PairSamples& pair, std::vector<std::string>& out) {
  static const std::set<std::string> told{"note", "budget", "engine_died"};
  for (const Event& event : pair.record->events) {
    if (told.count(event.kind) == 0 || !event.workload.empty()) continue;
    out.push_back(event.side ? fmt::format("{}: {}", pair.name(*event.side), event.text) : event.text);
  }
}

void add_unpaired(const PairSamples& pair, std::vector<std::string>& out) {
  for (const Side side : kBothSides) {
    const std::set<int>& groups = pair.side(side).unpaired_groups;
    if (!groups.empty())
      out.push_back(fmt::format("{}: launch group{} {} left out, where the other engine has no baseline",
                                pair.name(side), groups.size() == 1 ? "" : "s", fmt::join(groups, ", ")));
  }
  std::set<int> lost = pair.a.lost_groups;
  lost.insert(pair.b.lost_groups.begin(), pair.b.lost_groups.end());
  if (!lost.empty())
    out.push_back(
        fmt::format("launch group{} {} left out, of which nothing but contaminated baselines is left",
                    lost.size() == 1 ? "" : "s", fmt::join(lost, ", ")));
}

void add_price(const PairSamples& pair, std::vector<std::string>& out) {
  for (const Side side : kBothSides) {
    const SideSamples& samples = pair.side(side);
    const Measured price = measured_of(samples.price_ns);
    const Measured pass = measured_of(samples.graph_ms);
    if (!price.ms || !pass.ms) continue;
    const auto intervals = static_cast<double>(samples.calls_in(samples.mask_of_all()));
    const double total_ms = *price.ms * intervals * samples.ms_per_ns;
    out.push_back(
        fmt::format("{}: the clocks' price, {:.0f} ns an interval and {} ms in all ({:.1f}% of the pass), "
                    "is taken off the rows",
                    pair.name(side), *price.ms, brief_ms(total_ms), 100 * total_ms / *pass.ms));
  }
}

/// Both engines inherit it, so it is no difference; what was planted must be said all the same.
void add_planted(const Record& record, std::vector<std::string>& out) {
  for (const EngineFacts& one : record.engines) {
    if (!one.fault.empty())
      out.push_back(fmt::format("{}: the fault {} is planted in the method", side_name(one.side), one.fault));
  }
  const EngineFacts* engine = record.engine(Side::kA);
  if (engine == nullptr) return;
  for (const auto& [name, value] : engine->environment) {
    if (name.rfind("OPLEDGER_", 0) != 0 || value.empty()) continue;
    out.push_back(fmt::format("environment: {}={} was in force: a test's fault is planted", name, value));
  }
}

}  // namespace

std::vector<std::string> differences_of(const Record& record) {
  std::vector<std::string> out;
  const EngineFacts* a = record.engine(Side::kA);
  const EngineFacts* b = record.engine(Side::kB);
  if (a == nullptr || b == nullptr) return out;
  const std::array<std::string, 2> names = engine_labels(record);
  if (a->family != b->family || a->version != b->version)
    out.push_back(fmt::format("engine: {} is {} {}, {} is {} {}", names[0], a->family, a->version, names[1],
                              b->family, b->version));
  add_isa(names, *a, *b, out);
  add_map_differences("build", names, a->build, b->build, out);
  if (a->device_name != b->device_name)
    out.push_back(fmt::format("device: {} {}, {} {}", names[0], a->device_name, names[1], b->device_name));
  if (a->threads != b->threads)
    out.push_back(
        fmt::format("threads: {} {}, {} {}", names[0], threads_text(*a), names[1], threads_text(*b)));
  add_map_differences("flag", names, a->flags, b->flags, out);
  if (record.model(Side::kA) != nullptr && record.model(Side::kB) != nullptr)
    add_models(names, *record.model(Side::kA), *record.model(Side::kB), out);
  add_map_differences("environment", names, a->environment, b->environment, out);
  return out;
}

std::vector<std::string> caveats_of(const PairSamples& pair, const WorkloadLedger& ledger) {
  std::vector<std::string> out;
  const int groups = std::min(ledger.a.launch_groups, ledger.b.launch_groups);
  if (groups < kFewestForInterval)
    out.push_back(fmt::format(
        "{} launch groups: below three there are no intervals, and nothing is called real", groups));
  if (const std::optional<double> asked = pair.record->header.precision_ratio) {
    const std::vector<std::string> open = not_known_to(ledger, *asked);
    if (!open.empty())
      out.push_back(
          fmt::format("not known to the {:.3g}% of the pass that were asked for: {}; give a longer "
                      "--budget",
                      100 * *asked, fmt::join(open, ", ")));
  }
  const std::string end = pair.record->end_reason.value_or("killed");
  if (end != "complete") out.push_back(fmt::format("the session did not run to its plan's end: {}", end));
  for (const std::string& doubt : pair.record->doubts) out.push_back("record: " + doubt);
  add_events(pair, out);
  add_unpaired(pair, out);
  add_planted(*pair.record, out);
  add_excluded(pair, out);
  add_price(pair, out);
  if (is_mixture(pair) && pair.workload->token_source == "seeded ids")
    out.emplace_back("the tokens are random ids: real text routes to fewer distinct experts");
  return out;
}

std::string machine_json(const Record& record) {
  const MachineFacts& m = record.header.machine;
  Json machine = {{"cpu", m.cpu},
                  {"cores", m.cores},
                  {"isa", m.isa},
                  {"memory_bytes", m.memory_bytes},
                  {"kernel", m.kernel}};
  machine["virtual"] = m.is_virtual ? Json(*m.is_virtual) : Json(nullptr);
  machine["l2_bytes"] = m.l2_bytes ? Json(*m.l2_bytes) : Json(nullptr);
  machine["l3_bytes"] = m.l3_bytes ? Json(*m.l3_bytes) : Json(nullptr);
  const bool has_knee = record.cache && record.cache->knee_bytes;
  machine["knee_bytes"] = has_knee ? Json(*record.cache->knee_bytes) : Json(nullptr);
  return machine.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string engines_json(const Record& record) {
  Json engines = Json::object();
  for (const Side side : kBothSides) {
    const EngineFacts* facts = record.engine(side);
    if (facts == nullptr) continue;
    engines[side_name(side)] = {{"spec", facts->spec},
                                {"name", facts->name},
                                {"initialize", Json::parse(facts->initialize_json, nullptr, false)},
                                {"load_params", Json::parse(facts->load_params_json, nullptr, false)},
                                {"load", Json::parse(facts->load_json, nullptr, false)},
                                {"environment", facts->environment}};
  }
  return engines.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace opledger::core::detail
