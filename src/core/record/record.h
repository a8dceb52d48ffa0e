// The record of one session as plain data: every raw sample and fact, in time order. All analysis reads this
// and nothing else. The file's form and its field meanings are docs/record.md; times are integer nanoseconds,
// sizes integer bytes. It refuses to interpret: nothing here is averaged, dropped or corrected.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/graph/graph.h"
#include "core/model/model_facts.h"

namespace opledger::core {

/// Of records (docs/record.md). Raised when a line's meaning changes: another version is refused.
inline constexpr int kRecordVersion = 2;

enum class Side { kA, kB };

/// "a" or "b".
const char* side_name(Side side);

struct MachineFacts {
  std::string cpu;
  int cores = 0;
  std::vector<std::string> isa;
  int64_t memory_bytes = 0;
  std::optional<bool> is_virtual;
  std::optional<int64_t> l2_bytes, l3_bytes;
  std::string kernel;
};

struct Header {
  std::string opledger_version;
  std::vector<std::string> command;
  std::string started;  ///< RFC 3339
  uint64_t seed = 0;
  MachineFacts machine;
  std::optional<double> budget_s;
  std::optional<double> precision_ratio;  ///< that was asked for, of a pass
  std::string rows = "category";          ///< category, role, layer, op
};

/// The quick working-set probe. Beyond `knee_bytes` a working set no longer runs at cache speed.
struct CacheProbe {
  struct Point {
    int64_t bytes = 0;
    double read_bytes_per_s = 0;
  };
  std::vector<Point> curve;
  std::optional<int64_t> knee_bytes;
};

/// One side's engine. The three replies are kept whole, as JSON text; what analysis needs of them stands
/// beside (filled by the reader, ignored by the writer).
struct EngineFacts {
  Side side = Side::kA;
  std::string spec;  ///< as on the command line
  std::string name;
  std::string initialize_json = "{}";
  std::string load_params_json = "{}";
  std::string load_json = "{}";
  std::map<std::string, std::string> environment;

  std::string family;
  std::string version;
  std::map<std::string, std::string> build;
  std::string device_kind, device_name;
  std::vector<std::string> isa;
  std::string fault;  ///< planted in the method by `load`; empty: none
  std::optional<int> threads;
  std::map<std::string, std::string> flags;
};

/// One side's model file.
struct ModelLine {
  Side side = Side::kA;
  std::string path;
  int64_t bytes = 0;
  ModelFacts facts;
};

enum class WorkloadKind { kPrefill, kDecode };

struct WorkloadFacts {
  std::string id;
  WorkloadKind kind = WorkloadKind::kPrefill;
  int64_t tokens_per_pass = 0;
  int64_t depth_tokens = 0;
  std::string token_source;
};

/// The engine's `graph` reply, as text and read.
struct GraphFacts {
  Side side = Side::kA;
  std::string workload;
  std::string graph_json = "{}";
  WorkloadGraph graph;  ///< filled by the reader, ignored by the writer
};

/// A unit by its place: index into graphs, index into that graph's units.
struct UnitName {
  int graph = 0;
  int unit = 0;
  friend bool operator==(const UnitName& x, const UnitName& y) {
    return x.graph == y.graph && x.unit == y.unit;
  }
  friend bool operator<(const UnitName& x, const UnitName& y) {
    return x.graph != y.graph ? x.graph < y.graph : x.unit < y.unit;
  }
};

/// A unit of a replay, with what it really reads. `reuse_distance_bytes` is what the pass reads between two
/// uses of what the copy reads; empty when the engine cannot say.
struct ArmUnit {
  UnitName unit;
  std::string weights;        ///< given
  std::string asked_weights;  ///< asked for
  int64_t read_bytes = 0;
  std::optional<int64_t> reuse_distance_bytes;
};

struct RefusedUnit {
  UnitName unit;
  std::string reason;
};

/// The scope of an arm that copies every unit of several small rows at once. Each row takes its own units'
/// part.
inline constexpr const char* kSmallRows = "small";

struct Arm {
  std::string id;
  std::string kind;
  std::string scope;          ///< of replays; empty otherwise
  std::optional<int> copies;  ///< of replays
  std::vector<ArmUnit> units;
  std::vector<RefusedUnit> refused;
};

/// What `prepare` was asked (as text, for the writer) and what it gave (read).
struct ArmsFacts {
  Side side = Side::kA;
  std::string workload;
  int group = 0;
  std::string arms_json = "[]";
  std::string prepared_json = "{}";
  std::vector<Arm> arms;  ///< filled by the reader, ignored by the writer
};

/// Whether blocks of this arm hold unit times that, with head and tail, add up to their passes.
bool is_stamped(std::string_view arm_id);

/// No time of a pass is longer, in ns: it would last more than eleven days.
inline constexpr int64_t kMostPassNs = 1'000'000'000'000'000;

struct Pass {
  int64_t wall_ns = 0;
  int64_t graph_ns = 0;
  int64_t instrument_ns = 0;
  int digest = 0;                      ///< index into the block's digests
  std::vector<int64_t> step_graph_ns;  ///< adds up to graph_ns; empty: not told apart
};

struct ThreadUse {
  int64_t cpu_ns = 0;
  std::optional<int64_t> run_delay_ns;  ///< empty: the system does not say
};

/// Where a block stands in the session.
struct BlockPlace {
  Side side = Side::kA;
  std::string workload;
  int group = 0;
  int round = 0;
  int64_t stint = 0;  ///< counts up over the session; both sides where they changed places every few steps
  int64_t turn = 0;   ///< likewise; the arms of one turn alternated step by step
  int64_t sequence = 0;
};

/// What planted work really did in a block's passes. Late spins were preempted.
struct SpunWork {
  int64_t spins = 0, spun_ns = 0;
  int64_t late_spins = 0, late_ns = 0;  ///< of these
};

/// Passes of one arm, measured in one turn. Tables of times have one row per step of each pass, in order (one
/// per pass where passes do not tell their steps); a row is in unit order (docs/protocol.md).
struct Block {
  BlockPlace place;
  std::string arm;
  bool is_verify = false;  ///< untimed: its times mean nothing
  std::vector<Pass> passes;
  std::vector<std::vector<std::string>> digests;
  std::optional<std::string> logits;  ///< ok, not_finite, constant; empty: nobody looked
  std::optional<std::vector<std::vector<int64_t>>> unit_ns, copy_ns;
  std::optional<std::vector<int64_t>> head_ns, tail_ns;
  std::optional<std::string> state_digest;
  std::optional<int64_t> shared_inputs;  ///< empty: not looked at
  std::optional<SpunWork> planted;       ///< empty: nothing is planted
  std::vector<ThreadUse> threads;
  std::optional<int64_t> voluntary_switches, involuntary_switches;
  int64_t started_ns = 0, ended_ns = 0;
  int64_t elapsed_ns = 0;  ///< of that span, what this arm took and not the others of its turn

  /// The rows of a pass: the first one and the one behind the last.
  [[nodiscard]] std::pair<size_t, size_t> rows_of(size_t pass) const;
};

/// a against b on the same tokens.
struct LogitsFacts {
  std::string workload;
  int64_t rows = 0;
  std::optional<double> top1_agreement_ratio, kl_nats_mean;
};

struct Event {
  std::string kind;  ///< engine_died, excluded, interrupted, note, budget
  std::optional<Side> side;
  std::string text;
  std::string workload;          ///< empty: of the whole session
  std::optional<UnitName> unit;  ///< of `excluded`
  std::string reason;            ///< of `excluded`
};

struct Record {
  Header header;
  std::optional<CacheProbe> cache;
  std::vector<EngineFacts> engines;
  std::vector<ModelLine> models;
  std::vector<WorkloadFacts> workloads;
  std::vector<GraphFacts> graphs;
  std::vector<int> groups;
  std::vector<ArmsFacts> arms;
  std::vector<Block> blocks;
  std::vector<LogitsFacts> logits;
  std::vector<Event> events;
  std::optional<std::string> end_reason;  ///< empty: the session was killed
  std::vector<std::string>
      doubts;  ///< what the reader had to leave out: a cut last line, lines of unknown type

  /// nullptr when the session ended before that line was written.
  [[nodiscard]] const EngineFacts* engine(Side side) const;
  [[nodiscard]] const ModelLine* model(Side side) const;
  [[nodiscard]] const WorkloadFacts* workload(const std::string& id) const;
  /// The first graph of that side and workload: the probe's.
  [[nodiscard]] const GraphFacts* graph(Side side, const std::string& workload) const;
};

}  // namespace opledger::core
