// Writes whole records of sessions that never ran, from planted truths: what each unit costs, what a copy
// costs, what the clocks cost. What the analysis must find is then known without it. Goes through the
// record's writer and reader, as a real one does. Truths are whole nanoseconds, so that every sum is exact.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/ledger/analyse.h"
#include "core/record/read.h"
#include "core/record/write.h"

namespace opledger::testing {

/// What one engine really costs per pass, in ns, before a launch group's factor.
struct PlantedSide {
  std::string name, family, version;
  std::vector<int64_t> unit_ns;  ///< in an untouched pass
  int64_t rest_ns = 0;           ///< inside the graph, in no unit
  int64_t outside_ns = 0;        ///< wall - graph
  int64_t price_ns = 500;
  int64_t price_error_ns = 0;               ///< what the price blocks say too much
  std::vector<int64_t> group_ppm{0, 0, 0};  ///< how much slower each launch is, parts per million
  std::vector<std::string> isa{"AVX2"};
  std::string flash_attention = "1";
  int64_t stamped_extra_ns = 0;  ///< what stamping adds to a pass beyond its price, in its tail
  int64_t drift_ppm = 0;         ///< how much slower every next round is
  int64_t run_delay_ns = 0;      ///< of each thread in each block
  int64_t moved_ns = 0;          ///< of unit 0, booked on unit 1 in the stamp blocks of every second round
  std::vector<int> missing_groups{};  ///< launches that this side never measured
};

/// A replay arm and its stamped twin, on both sides.
struct PlantedReplay {
  std::string scope;
  std::vector<int> units;
  std::string weights = "sibling";
  int copies = 1;
  int64_t copy_ppm = 1000000;    ///< c / o
  int64_t beside_ppm = 1000000;  ///< o' / o
  int64_t neighbour_ns = 0;      ///< what the other units gain in an augmented pass
  int64_t error_ns = 0;          ///< what the plain increment has too much: a lie of the clock
  int64_t reuse_distance_bytes = 500000000;
  bool is_stamped = true;
  bool is_plain = true;
  std::vector<int> refused{};   ///< of `units`, on both sides: asked for, not copied
  std::vector<int> excluded{};  ///< of `units`, on both sides: prepared, then prepared again without
};

struct PlantedSession {
  std::string workload = "pp512";
  bool is_decode = false;
  int tokens = 512;
  std::vector<std::string> unit_ops{"MUL_MAT", "FLASH_ATTN_EXT", "MUL_MAT", "RMS_NORM"};
  PlantedSide a, b;
  std::vector<PlantedReplay> replays;
  int rounds = 2;
  int stamp_rounds = 100;  ///< stamps are left out of later rounds
  int groups = 3;
  int64_t barrier_ns = 300;
  double top1 = 0.96;
  bool is_interleaved = false;  ///< a round is one turn, with one baseline
  std::string bad_digest_arm;   ///< of side a
  std::string bad_state_arm;    ///< of side a
  bool has_price = true;
  bool has_verify = true;
  std::map<std::string, std::string> environment{};
  std::string end = "complete";

  [[nodiscard]] std::string text() const;
  [[nodiscard]] core::Record record() const {
    Result<core::Record> parsed = core::parse_record(text(), "synthetic.json");
    EXPECT_TRUE(parsed.is_ok()) << (parsed ? "" : parsed.error().message);
    return parsed ? std::move(*parsed) : core::Record{};
  }
};

/// Units 0 and 2 are dense, 1 is attention, 3 is norm.
inline core::Scoping planted_scoping(size_t inputs) {
  core::Scoping scoping;
  scoping.scopes = {
      {"dense_proj", {"dense_proj"}, {}}, {"attention", {"attention"}, {}}, {"norm", {"norm"}, {}}};
  scoping.unit_scope.assign(inputs, {0, 1, 0, 2});
  return scoping;
}

/// Rules that sort planted units the same way.
inline core::RulesByFamily planted_rules() {
  core::RulesByFamily rules;
  for (const char* family : {"llama.cpp", "ik_llama.cpp"}) {
    const std::string json =
        std::string(R"({"schema":"opledger-rules","version":1,"family":")") + family +
        R"(","rules":[{"op":"MUL_MAT","category":"dense_proj"},)"
        R"({"op":"FLASH_ATTN_EXT","category":"attention"},{"op":"RMS_NORM","category":"norm"}]})";
    auto parsed = core::parse_rules(json, "rules.json");
    EXPECT_TRUE(parsed.is_ok()) << (parsed ? "" : parsed.error().message);
    if (parsed) rules[family] = *parsed;
  }
  return rules;
}

namespace detail {

class SessionText {
 public:
  explicit SessionText(const PlantedSession& session) : s_(session) {}

  std::string build() {
    add_facts();
    for (int group = 1; group <= s_.groups; ++group) {
      line(core::group_line(group));
      for (const core::Side side : {core::Side::kA, core::Side::kB}) add_group(side, group);
    }
    if (!s_.end.empty()) line(core::end_line(s_.end));
    return text_;
  }

 private:
  void line(const std::string& one) { text_ += one + "\n"; }
  [[nodiscard]] const PlantedSide& planted(core::Side side) const {
    return side == core::Side::kA ? s_.a : s_.b;
  }

  void add_facts() {
    core::Header header;
    header.opledger_version = "0.1.0";
    header.command = {"opledger", "compare", s_.a.name, s_.b.name};
    header.started = "2026-01-02T03:04:05Z";
    header.machine = {"Example CPU", 2, {"AVX2"}, 8000000000, true, 2097152, 33554432, "6.1"};
    header.budget_s = 60;
    line(core::record_line(header));
    line(core::record_line(core::CacheProbe{{{1000000, 5e10}, {100000000, 1e10}}, 40000000}));
    for (const core::Side side : {core::Side::kA, core::Side::kB}) add_engine(side);
    line(core::record_line(core::WorkloadFacts{
        s_.workload, s_.is_decode ? core::WorkloadKind::kDecode : core::WorkloadKind::kPrefill, s_.tokens,
        s_.is_decode ? 64 : 0, "seeded ids"}));
    for (const core::Side side : {core::Side::kA, core::Side::kB}) {
      core::GraphFacts graph;
      graph.side = side;
      graph.workload = s_.workload;
      graph.graph_json = graph_json();
      line(core::record_line(graph));
    }
    line(core::record_line(core::LogitsFacts{s_.workload, 16, s_.top1, 0.002}));
  }

  void add_engine(core::Side side) {
    const PlantedSide& p = planted(side);
    core::EngineFacts engine;
    engine.side = side;
    engine.spec = p.name;
    engine.name = p.name;
    engine.environment = s_.environment;
    std::string isa;
    for (const std::string& name : p.isa) isa += (isa.empty() ? "\"" : ",\"") + name + "\"";
    engine.initialize_json = fmt::format(
        R"({{"engine":{{"family":"{}","version":"{}","build":{{}}}},"device":{{"kind":"cpu","name":"Example CPU","isa":[{}]}}}})",
        p.family, p.version, isa);
    engine.load_json = fmt::format(R"({{"threads":2,"flags":{{"fa":"{}"}}}})", p.flash_attention);
    line(core::record_line(engine));
    core::ModelLine model;
    model.side = side;
    model.path = "m.gguf";
    model.bytes = 90000000;
    model.facts.architecture = "llama";
    model.facts.metadata["llama.block_count"] = 1.0;
    model.facts.tensors.push_back({"blk.0.attn_q.weight", "q4_0", {64, 64, 1, 1}, 80000000});
    line(core::record_line(model));
  }

  [[nodiscard]] std::string graph_json() const {
    std::string nodes;
    std::string units;
    for (size_t i = 0; i < s_.unit_ops.size(); ++i) {
      nodes += fmt::format(
          R"({}{{"op":"{}","name":"n-{}","type":"f32","ne":[64,1,1,1],"nb":[4,256,256,256],"src":[-1],"view":false,)"
          R"("in_place":false,"writes":null,"written":true,"read_bytes":1000,"write_bytes":256,"flop":8192,)"
          R"("device":"CPU","variant":null}})",
          i == 0 ? "" : ",", s_.unit_ops[i], i);
      units += fmt::format(R"({}{{"nodes":[{}],"why":"single"}})", i == 0 ? "" : ",", i);
    }
    return fmt::format(
        R"({{"workload":"{}","calls":[0],"graphs":[{{"signature":"00112233445566778899aabbccddeeff","nodes":[{}],)"
        R"("tensors":[{{"name":"blk.0.attn_q.weight","kind":"weight","type":"q4_0","ne":[64,64,1,1],)"
        R"("nb":[18,36,2304,2304],"bytes":80000000,"buffer":"CPU","variant":null}}],"units":[{}]}}],)"
        R"("probe":{{"ran":true,"reason":null}},"routing":[]}})",
        s_.workload, nodes, units);
  }

  static bool has(const std::vector<int>& list, int item) {
    return std::find(list.begin(), list.end(), item) != list.end();
  }

  [[nodiscard]] std::string arms_json(bool is_again) const {
    std::string arms = R"([{"id":"baseline","kind":"baseline"})";
    for (const PlantedReplay& r : s_.replays) {
      for (const char* kind : {"replay", "stamped_replay"}) {
        if (!(std::string(kind) == "replay" ? r.is_plain : r.is_stamped)) continue;
        std::string units;
        for (const int u : r.units) {
          if (is_again && has(r.excluded, u)) continue;
          units += fmt::format(R"({}{{"unit":[0,{}],"copies":{},"weights":"{}","stride":1}})",
                               units.empty() ? "" : ",", u, r.copies, r.weights);
        }
        arms += fmt::format(R"(,{{"id":"{}","kind":"{}","scope":"{}","copies":{},"units":[{}]}})",
                            id(kind, r), kind, r.scope, r.copies, units);
      }
    }
    return arms + "]";
  }

  [[nodiscard]] std::string prepared_json(bool is_again) const {
    std::string arms = R"({"arms":[{"id":"baseline","units":[],"refused":[]})";
    for (const PlantedReplay& r : s_.replays) {
      std::string units;
      std::string refused;
      for (const int u : r.units) {
        if (is_again && has(r.excluded, u)) continue;
        if (has(r.refused, u))
          refused += fmt::format(R"({}{{"unit":[0,{}],"reason":"planted"}})", refused.empty() ? "" : ",", u);
        else
          units +=
              fmt::format(R"({}{{"unit":[0,{}],"weights":"{}","read_bytes":1000,"reuse_distance_bytes":{}}})",
                          units.empty() ? "" : ",", u, r.weights, r.reuse_distance_bytes);
      }
      for (const char* kind : {"replay", "stamped_replay"})
        if (std::string(kind) == "replay" ? r.is_plain : r.is_stamped)
          arms += fmt::format(R"(,{{"id":"{}","units":[{}],"refused":[{}]}})", id(kind, r), units, refused);
    }
    return arms + "]}";
  }

  static std::string id(const std::string& kind, const PlantedReplay& r) {
    return fmt::format("{}:{}:{}:{}", kind, r.scope, r.weights, r.copies);
  }

  void add_group(core::Side side, int group) {
    if (has(planted(side).missing_groups, group)) return;
    side_ = side;
    group_ = group;
    for (const bool is_again : {false, true}) {
      core::ArmsFacts arms;
      arms.side = side;
      arms.workload = s_.workload;
      arms.group = group;
      arms.arms_json = arms_json(is_again);
      arms.prepared_json = prepared_json(is_again);
      line(core::record_line(arms));
      if (!is_again) add_damage();
    }
    std::vector<std::string> order{"stamp", "empty"};
    for (size_t i = 0; i < s_.replays.size(); ++i) {
      if (s_.replays[i].is_plain) order.push_back(fmt::format("r{}", i));
      if (s_.replays[i].is_stamped) order.push_back(fmt::format("s{}", i));
    }
    for (round_ = 1; round_ <= s_.rounds; ++round_) {
      turn_ = sequence_ + 1;
      add_baseline();
      if (round_ == 1 && s_.has_price) add_price();
      for (const std::string& arm : order) {
        if (arm == "stamp" && round_ > s_.stamp_rounds) continue;
        add_arm(arm);
        if (!s_.is_interleaved) add_baseline();
      }
    }
    if (!s_.has_verify) return;
    add_verify("baseline");
    for (const char* arm : {"price", "stamp", "empty"}) add_verify(arm);
    for (const PlantedReplay& r : s_.replays) {
      if (r.is_plain) add_verify(id("replay", r));
      if (r.is_stamped) add_verify(id("stamped_replay", r));
    }
  }

  [[nodiscard]] int64_t slowed(int64_t ns) const {
    const PlantedSide& p = planted(side_);
    return ns + ns * (p.group_ppm.at(static_cast<size_t>(group_ - 1)) + p.drift_ppm * (round_ - 1)) / 1000000;
  }
  [[nodiscard]] std::vector<int64_t> originals() const {
    std::vector<int64_t> out;
    for (const int64_t ns : planted(side_).unit_ns) out.push_back(slowed(ns));
    return out;
  }
  static int64_t sum(const std::vector<int64_t>& values) {
    int64_t total = 0;
    for (const int64_t value : values) total += value;
    return total;
  }
  [[nodiscard]] int64_t rest() const { return slowed(planted(side_).rest_ns); }

  core::Block block(const std::string& arm, int64_t graph_ns) {
    core::Block out;
    ++sequence_;
    const int64_t turn = s_.is_interleaved ? turn_ : sequence_;
    out.place = {side_, s_.workload, group_, round_, turn_, turn, sequence_};
    out.arm = arm;
    const bool is_bad = side_ == core::Side::kA && arm == s_.bad_digest_arm;
    out.digests = {{is_bad ? "ffff" : "aaaa"}};
    out.logits = "ok";
    const int64_t wall_ns = graph_ns + slowed(planted(side_).outside_ns);
    // Three passes, one of them disturbed: medians must not care.
    for (const int64_t more : {int64_t{0}, int64_t{0}, int64_t{7000000}})
      out.passes.push_back({wall_ns + more, graph_ns + more, 1000, 0, {}});
    out.threads = {{graph_ns, planted(side_).run_delay_ns}, {graph_ns, planted(side_).run_delay_ns}};
    out.voluntary_switches = 1;
    out.involuntary_switches = 0;
    out.started_ns = 1000000000 * sequence_;
    out.ended_ns = out.started_ns + 100000000;
    out.elapsed_ns = 100000000;
    return out;
  }

  // The disturbance of the third pass lies in its tail.
  static void stamp(core::Block& block, const std::vector<int64_t>& units, int64_t head, int64_t tail) {
    block.unit_ns = {units, units, units};
    block.head_ns = {head, head, head};
    block.tail_ns = {tail, tail, tail + 7000000};
  }

  void add_baseline() { line(core::record_line(block("baseline", sum(originals()) + rest()))); }

  void add_price() {
    const std::vector<int64_t> prices(s_.unit_ops.size(),
                                      planted(side_).price_ns + planted(side_).price_error_ns);
    core::Block out = block("price", sum(originals()) + rest() + 2 * sum(prices));
    out.unit_ns = {prices, prices, prices};
    line(core::record_line(out));
  }

  void add_arm(const std::string& arm) {
    const int64_t baseline = sum(originals()) + rest();
    if (arm == "empty") {
      line(
          core::record_line(block(arm, baseline + s_.barrier_ns * static_cast<int64_t>(s_.unit_ops.size()))));
    } else if (arm == "stamp") {
      std::vector<int64_t> units = originals();
      for (int64_t& ns : units) ns += planted(side_).price_ns;
      const int64_t moved = round_ % 2 == 0 ? planted(side_).moved_ns : 0;
      units[0] -= moved;
      units[1] += moved;
      const int64_t extra = planted(side_).stamped_extra_ns;
      core::Block out = block(arm, sum(units) + rest() + extra);
      stamp(out, units, rest() / 2, rest() - rest() / 2 + extra);
      line(core::record_line(out));
    } else {
      add_replay(s_.replays.at(std::stoul(arm.substr(1))), arm[0] == 's');
    }
  }

  void add_replay(const PlantedReplay& r, bool is_stamped) {
    const int64_t price = is_stamped ? planted(side_).price_ns : 0;
    std::vector<int64_t> units = originals();
    std::vector<int64_t> copies(units.size(), 0);
    for (const int u : r.units) {
      if (has(r.refused, u) || has(r.excluded, u)) continue;
      const auto at = static_cast<size_t>(u);
      copies[at] = units[at] * r.copy_ppm / 1000000 * r.copies + price;
      units[at] = units[at] * r.beside_ppm / 1000000;
    }
    for (int64_t& ns : units) ns += price;
    // The neighbour that gains is the last unit.
    units.back() += r.neighbour_ns;
    const int64_t total =
        sum(units) + sum(copies) + rest() + (is_stamped ? planted(side_).stamped_extra_ns : r.error_ns);
    core::Block out = block(id(is_stamped ? "stamped_replay" : "replay", r), total);
    if (is_stamped) {
      stamp(out, units, rest() / 2, rest() - rest() / 2 + planted(side_).stamped_extra_ns);
      out.copy_ns = {copies, copies, copies};
    }
    line(core::record_line(out));
  }

  // Units are excluded because copies of them changed the state.
  void add_damage() {
    for (const PlantedReplay& r : s_.replays) {
      if (r.excluded.empty()) continue;
      for (const char* kind : {"replay", "stamped_replay"}) add_verify(id(kind, r), "eeee");
    }
  }

  void add_verify(const std::string& arm) {
    const bool is_bad = side_ == core::Side::kA && arm == s_.bad_state_arm;
    add_verify(arm, is_bad ? "eeee" : "dddd");
  }

  void add_verify(const std::string& arm, const std::string& state_digest) {
    turn_ = sequence_ + 1;
    core::Block out = block(arm, 1);
    out.is_verify = true;
    out.state_digest = state_digest;
    line(core::record_line(out));
  }

  const PlantedSession& s_;
  std::string text_;
  core::Side side_ = core::Side::kA;
  int group_ = 0;
  int round_ = 0;
  int64_t turn_ = 0;
  int64_t sequence_ = 0;
};

}  // namespace detail

inline std::string PlantedSession::text() const {
  return detail::SessionText(*this).build();
}

/// One engine before and after a change, 1366 and 1405 ms: attention +40, norm -1. Launches scatter by up to
/// 0.3%.
inline PlantedSession base_and_head() {
  PlantedSession s;
  s.b = {"base", "llama.cpp", "1", {800000000, 150000000, 400000000, 10000000}, 4000000, 2000000};
  s.a = {"head", "llama.cpp", "2", {800000000, 190000000, 400000000, 9000000}, 4000000, 2000000};
  s.a.group_ppm = {0, 5000, -5000};
  s.b.group_ppm = {2000, 4000, -6000};
  return s;
}

/// llama 4 units of 800 + 150 + 400 + 10 ms, ik 150 + 110 + 60 + 8 ms: dense +990, attention +40, norm +2.
inline PlantedSession two_engines() {
  PlantedSession s;
  s.a = {"llama", "llama.cpp", "1", {800000000, 150000000, 400000000, 10000000}, 4000000, 2000000};
  s.b = {"ik", "ik_llama.cpp", "2", {150000000, 110000000, 60000000, 8000000}, 1000000, 1000000};
  s.a.group_ppm = {0, 5000, -5000};
  s.b.group_ppm = {2000, 4000, -6000};
  return s;
}

inline core::WorkloadLedger analysed(const PlantedSession& session) {
  const core::Record record = session.record();
  const auto ledger = core::analyse_scoped(record, planted_scoping(core::ledger_inputs(record).size()), {});
  EXPECT_TRUE(ledger.is_ok()) << (ledger ? "" : ledger.error().message);
  return ledger && !ledger->workloads.empty() ? ledger->workloads.front() : core::WorkloadLedger{};
}

// The first check of that name and engine whose text begins with `start`.
inline core::Check check_named(const core::WorkloadLedger& ledger, const std::string& name,
                               const std::string& engine, const std::string& start = "") {
  for (const core::Check& check : ledger.checks) {
    if (check.name == name && check.engine == engine && check.text.compare(0, start.size(), start) == 0)
      return check;
  }
  ADD_FAILURE() << "no check " << name << " of " << engine << " " << start;
  return {};
}

inline PlantedReplay dense_replay() {
  return {"dense_proj", {0, 2}};
}

}  // namespace opledger::testing
