// Reads each line's JSON into its struct. A Problem carries the key of the first thing that is wrong up to
// the line loop, which adds file and line; it never leaves this file.
#include "core/record/read.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "core/record/consistency.h"

namespace opledger::core {

namespace {

using Json = nlohmann::json;

struct Problem {
  std::string text;
};

[[noreturn]] void wrong(const std::string& key, const char* expected) {
  throw Problem{fmt::format("key \"{}\" is missing or not {}", key, expected)};
}

const Json* find(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

const Json& need(const Json& object, const char* key, const char* expected) {
  const Json* value = object.is_object() ? find(object, key) : nullptr;
  if (value == nullptr) wrong(key, expected);
  return *value;
}

int64_t as_integer(const Json& value, const char* key) {
  if (!value.is_number_integer()) wrong(key, "an integer");
  if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()})
    wrong(key, "an integer below 2^63");
  return value.get<int64_t>();
}

int64_t integer(const Json& object, const char* key) {
  return as_integer(need(object, key, "an integer"), key);
}

int small_integer(const Json& object, const char* key) {
  const int64_t value = integer(object, key);
  if (value < 0 || value > std::numeric_limits<int>::max()) wrong(key, "a count below 2^31");
  return static_cast<int>(value);
}

constexpr const char* kTimeForm = "a time in ns from 0 to 10^15";

int64_t as_time(const Json& value, const char* key) {
  const int64_t ns = as_integer(value, key);
  if (ns < 0 || ns > kMostPassNs) wrong(key, kTimeForm);
  return ns;
}

int64_t time(const Json& object, const char* key) {
  return as_time(need(object, key, kTimeForm), key);
}

std::optional<int64_t> maybe_integer(const Json& object, const char* key) {
  const Json* value = find(object, key);
  return value == nullptr ? std::nullopt : std::optional(as_integer(*value, key));
}

std::optional<int64_t> maybe_time(const Json& object, const char* key) {
  const Json* value = find(object, key);
  return value == nullptr ? std::nullopt : std::optional(as_time(*value, key));
}

// Of CLOCK_MONOTONIC: how long the machine runs has no limit.
int64_t moment(const Json& object, const char* key) {
  const int64_t ns = maybe_integer(object, key).value_or(0);
  if (ns < 0) wrong(key, "a time in ns from 0 up");
  return ns;
}

std::optional<double> maybe_number(const Json& object, const char* key) {
  const Json* value = find(object, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) wrong(key, "a number");
  return value->get<double>();
}

std::string text(const Json& object, const char* key) {
  const Json& value = need(object, key, "text");
  if (!value.is_string()) wrong(key, "text");
  return value.get<std::string>();
}

std::string text_or(const Json& object, const char* key, const std::string& otherwise) {
  return find(object, key) == nullptr ? otherwise : text(object, key);
}

const Json& list(const Json& object, const char* key) {
  const Json& value = need(object, key, "a list");
  if (!value.is_array()) wrong(key, "a list");
  return value;
}

std::vector<std::string> texts(const Json& values, const char* key) {
  std::vector<std::string> out;
  for (const Json& value : values) {
    if (!value.is_string()) wrong(key, "a list of text");
    out.push_back(value.get<std::string>());
  }
  return out;
}

using IntegerReader = int64_t (*)(const Json&, const char*);

std::vector<int64_t> integers(const Json& values, const char* key, IntegerReader read = as_integer) {
  if (!values.is_array()) wrong(key, "a list of integers");
  std::vector<int64_t> out;
  out.reserve(values.size());
  for (const Json& value : values) out.push_back(read(value, key));
  return out;
}

std::string as_plain_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::map<std::string, std::string> text_map(const Json& object, const char* key) {
  std::map<std::string, std::string> out;
  const Json* values = find(object, key);
  if (values == nullptr) return out;
  if (!values->is_object()) wrong(key, "an object");
  for (const auto& [name, value] : values->items()) out[name] = as_plain_text(value);
  return out;
}

Side as_side(const Json& value, const char* key) {
  if (value == "a") return Side::kA;
  if (value == "b") return Side::kB;
  wrong(key, "\"a\" or \"b\"");
}

Side side_of(const Json& line) {
  return as_side(need(line, "side", "\"a\" or \"b\""), "side");
}

UnitName unit_name(const Json& object, const char* key) {
  const std::vector<int64_t> pair = integers(need(object, key, "[graph, unit]"), key);
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  if (pair.size() != 2 || pair[0] < 0 || pair[1] < 0 || pair[0] > kMost || pair[1] > kMost)
    wrong(key, "[graph, unit]");
  return {static_cast<int>(pair[0]), static_cast<int>(pair[1])};
}

Header read_header(const Json& line) {
  if (text(line, "schema") != "opledger-record") wrong("schema", "\"opledger-record\"");
  if (const int64_t version = integer(line, "version"); version != kRecordVersion)
    throw Problem{
        fmt::format("this record has version {}, this program reads version {}: use an opledger of the "
                    "record's own version",
                    version, kRecordVersion)};
  Header header;
  if (const Json* self = find(line, "opledger")) header.opledger_version = text_or(*self, "version", "");
  if (find(line, "command") != nullptr) header.command = texts(list(line, "command"), "command");
  header.started = text_or(line, "started", "");
  if (const Json* seed = find(line, "seed"); seed != nullptr && seed->is_number_integer())
    header.seed = seed->get<uint64_t>();
  const Json& machine = need(line, "machine", "an object");
  header.machine.cpu = text_or(machine, "cpu", "");
  header.machine.cores = small_integer(machine, "cores");
  if (find(machine, "isa") != nullptr) header.machine.isa = texts(list(machine, "isa"), "isa");
  header.machine.memory_bytes = maybe_integer(machine, "memory_bytes").value_or(0);
  if (const Json* value = find(machine, "virtual"); value != nullptr && value->is_boolean())
    header.machine.is_virtual = value->get<bool>();
  header.machine.l2_bytes = maybe_integer(machine, "l2_bytes");
  header.machine.l3_bytes = maybe_integer(machine, "l3_bytes");
  header.machine.kernel = text_or(machine, "kernel", "");
  header.budget_s = maybe_number(line, "budget_s");
  header.precision_ratio = maybe_number(line, "precision_ratio");
  header.rows = text_or(line, "rows", "category");
  return header;
}

CacheProbe read_cache(const Json& line) {
  CacheProbe cache;
  for (const Json& point : list(line, "curve")) {
    const std::optional<double> rate = maybe_number(point, "read_bytes_per_s");
    if (!rate) wrong("read_bytes_per_s", "a number");
    cache.curve.push_back({integer(point, "bytes"), *rate});
  }
  cache.knee_bytes = maybe_integer(line, "knee_bytes");
  return cache;
}

EngineFacts read_engine(const Json& line) {
  EngineFacts engine;
  engine.side = side_of(line);
  engine.spec = text(line, "spec");
  engine.name = text(line, "name");
  const Json& initialize = need(line, "initialize", "an object");
  const Json& load = need(line, "load", "an object");
  engine.initialize_json = initialize.dump();
  engine.load_params_json = need(line, "load_params", "an object").dump();
  engine.load_json = load.dump();
  engine.environment = text_map(line, "environment");
  const Json& facts = need(initialize, "engine", "an object");
  engine.family = text(facts, "family");
  engine.version = text_or(facts, "version", "");
  engine.build = text_map(facts, "build");
  if (const Json* device = find(initialize, "device")) {
    engine.device_kind = text_or(*device, "kind", "");
    engine.device_name = text_or(*device, "name", "");
    if (find(*device, "isa") != nullptr) engine.isa = texts(list(*device, "isa"), "isa");
  }
  engine.fault = text_or(line.at("load_params"), "fault", "");
  if (find(load, "threads") != nullptr) engine.threads = small_integer(load, "threads");
  engine.flags = text_map(load, "flags");
  return engine;
}

ModelTensor read_tensor(const Json& line) {
  ModelTensor tensor{text(line, "name"), text(line, "type"), {1, 1, 1, 1}, integer(line, "bytes")};
  const std::vector<int64_t> ne = integers(need(line, "ne", "a list"), "ne");
  if (ne.size() > tensor.ne.size()) wrong("ne", "a list of at most four integers");
  std::copy(ne.begin(), ne.end(), tensor.ne.begin());
  return tensor;
}

ModelLine read_model(const Json& line) {
  ModelLine model;
  model.side = side_of(line);
  model.path = text(line, "path");
  model.bytes = integer(line, "bytes");
  model.facts.architecture = text(line, "architecture");
  for (const auto& [key, value] : need(line, "metadata", "an object").items()) {
    if (value.is_number())
      model.facts.metadata[key] = value.get<double>();
    else
      model.facts.metadata[key] = as_plain_text(value);
  }
  for (const Json& tensor : list(line, "tensors")) model.facts.tensors.push_back(read_tensor(tensor));
  return model;
}

WorkloadFacts read_workload(const Json& line) {
  WorkloadFacts workload;
  workload.id = text(line, "id");
  const std::string kind = text(line, "kind");
  if (kind != "prefill" && kind != "decode") wrong("kind", "\"prefill\" or \"decode\"");
  workload.kind = kind == "prefill" ? WorkloadKind::kPrefill : WorkloadKind::kDecode;
  workload.tokens_per_pass = integer(line, "tokens_per_pass");
  if (workload.tokens_per_pass < 1) wrong("tokens_per_pass", "at least 1");
  workload.depth_tokens = maybe_integer(line, "depth_tokens").value_or(0);
  workload.token_source = text_or(line, "token_source", "");
  return workload;
}

GraphFacts read_graph(const Json& line) {
  GraphFacts facts;
  facts.side = side_of(line);
  facts.workload = text(line, "workload");
  facts.graph_json = need(line, "graph", "an object").dump();
  Result<WorkloadGraph> graph = parse_workload_graph(facts.graph_json);
  if (!graph) throw Problem{graph.error().message};
  facts.graph = std::move(*graph);
  return facts;
}

Arm read_arm(const Json& asked) {
  Arm arm;
  arm.id = text(asked, "id");
  arm.kind = text(asked, "kind");
  arm.scope = text_or(asked, "scope", "");
  if (find(asked, "copies") != nullptr) arm.copies = small_integer(asked, "copies");
  if (find(asked, "units") == nullptr) return arm;
  for (const Json& unit : list(asked, "units")) {
    const std::string weights = text_or(unit, "weights", "same");
    arm.units.push_back({unit_name(unit, "unit"), weights, weights, 0, std::nullopt});
  }
  return arm;
}

void read_prepared(const Json& prepared, Arm& arm) {
  if (find(prepared, "units") != nullptr && !list(prepared, "units").empty()) {
    std::map<UnitName, std::string> asked;
    for (const ArmUnit& unit : arm.units) asked[unit.unit] = unit.asked_weights;
    arm.units.clear();
    for (const Json& unit : list(prepared, "units")) {
      const UnitName name = unit_name(unit, "unit");
      const std::string given = text_or(unit, "weights", "same");
      const auto wanted = asked.find(name);
      arm.units.push_back({name, given, wanted == asked.end() ? given : wanted->second,
                           maybe_integer(unit, "read_bytes").value_or(0),
                           maybe_integer(unit, "reuse_distance_bytes")});
    }
  }
  if (find(prepared, "refused") == nullptr) return;
  for (const Json& unit : list(prepared, "refused"))
    arm.refused.push_back({unit_name(unit, "unit"), text_or(unit, "reason", "")});
}

ArmsFacts read_arms(const Json& line) {
  ArmsFacts facts;
  facts.side = side_of(line);
  facts.workload = text(line, "workload");
  facts.group = small_integer(line, "group");
  const Json& asked = list(line, "arms");
  const Json& prepared = need(line, "prepared", "an object");
  facts.arms_json = asked.dump();
  facts.prepared_json = prepared.dump();
  for (const Json& arm : asked) facts.arms.push_back(read_arm(arm));
  if (find(prepared, "arms") == nullptr) return facts;
  for (const Json& given : list(prepared, "arms")) {
    const std::string id = text(given, "id");
    for (Arm& arm : facts.arms) {
      if (arm.id == id) read_prepared(given, arm);
    }
  }
  return facts;
}

std::optional<std::vector<std::vector<int64_t>>> maybe_table(const Json& object, const char* key,
                                                             size_t rows) {
  const Json* value = find(object, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array() || value->size() != rows) wrong(key, "a list with one list per step");
  std::vector<std::vector<int64_t>> table;
  for (const Json& row : *value) table.push_back(integers(row, key, as_time));
  return table;
}

std::optional<std::vector<int64_t>> maybe_list(const Json& object, const char* key, size_t rows) {
  const Json* value = find(object, key);
  if (value == nullptr) return std::nullopt;
  std::vector<int64_t> out = integers(*value, key, as_time);
  if (out.size() != rows) wrong(key, "a list with one integer per step");
  return out;
}

void read_steps(const Json& entry, bool is_timed, Pass& pass) {
  const Json* steps = find(entry, "step_graph_ns");
  if (steps == nullptr) return;
  pass.step_graph_ns = integers(*steps, "step_graph_ns", as_time);
  if (!is_timed) return;
  // Taken off one by one: sums of hostile times would overflow.
  int64_t left = pass.graph_ns;
  bool is_possible = true;
  for (const int64_t ns : pass.step_graph_ns) {
    is_possible = is_possible && ns > 0 && ns <= left;
    left -= ns;
    if (!is_possible) break;
  }
  if (!is_possible || left != 0) wrong("step_graph_ns", "times above 0 that add up to graph_ns");
}

void read_passes(const Json& body, Block& block) {
  if (find(body, "digests") != nullptr) {
    for (const Json& digest : list(body, "digests")) block.digests.push_back(texts(digest, "digests"));
  }
  for (const Json& entry : list(body, "passes")) {
    Pass pass;
    pass.wall_ns = time(entry, "wall_ns");
    pass.graph_ns = time(entry, "graph_ns");
    pass.instrument_ns = maybe_time(entry, "instrument_ns").value_or(0);
    const bool is_possible = 0 < pass.graph_ns && pass.graph_ns <= pass.wall_ns;
    if (!block.is_verify && !is_possible) wrong("graph_ns", "from 1 to the pass's wall_ns");
    read_steps(entry, !block.is_verify, pass);
    const int64_t digest = integer(entry, "digest");
    if (digest < 0 || digest >= static_cast<int64_t>(block.digests.size()))
      wrong("digest", "an index into digests");
    pass.digest = static_cast<int>(digest);
    block.passes.push_back(pass);
  }
}

SpunWork read_planted(const Json& entry) {
  SpunWork work{integer(entry, "spins"), time(entry, "spun_ns"), integer(entry, "late_spins"),
                time(entry, "late_ns")};
  if (work.late_spins < 0 || work.late_spins > work.spins || work.late_ns > work.spun_ns)
    wrong("late_spins", "at most all spins");
  return work;
}

Block read_block(const Json& line) {
  Block block;
  block.place.side = side_of(line);
  block.place.workload = text(line, "workload");
  block.place.group = small_integer(line, "group");
  block.place.round = small_integer(line, "round");
  block.place.stint = integer(line, "stint");
  block.place.turn = integer(line, "turn");
  block.place.sequence = integer(line, "sequence");
  const Json& body = need(line, "block", "an object");
  block.arm = text(body, "arm");
  if (const Json* verify = find(body, "verify"))
    block.is_verify = verify->is_boolean() && verify->get<bool>();
  read_passes(body, block);
  const size_t rows = block.passes.empty() ? 0 : block.rows_of(block.passes.size() - 1).second;
  if (find(body, "logits") != nullptr) block.logits = text(body, "logits");
  block.unit_ns = maybe_table(body, "unit_ns", rows);
  block.copy_ns = maybe_table(body, "copy_ns", rows);
  block.head_ns = maybe_list(body, "head_ns", rows);
  block.tail_ns = maybe_list(body, "tail_ns", rows);
  if (find(body, "state_digest") != nullptr) block.state_digest = text(body, "state_digest");
  block.shared_inputs = maybe_integer(body, "shared_inputs");
  if (const Json* planted = find(body, "planted")) block.planted = read_planted(*planted);
  if (find(body, "threads") != nullptr) {
    for (const Json& thread : list(body, "threads"))
      block.threads.push_back({time(thread, "cpu_ns"), maybe_time(thread, "run_delay_ns")});
  }
  block.voluntary_switches = maybe_integer(body, "voluntary_switches");
  block.involuntary_switches = maybe_integer(body, "involuntary_switches");
  block.started_ns = moment(body, "started_ns");
  block.ended_ns = moment(body, "ended_ns");
  if (block.ended_ns < block.started_ns) wrong("ended_ns", "at or after started_ns");
  block.elapsed_ns = time(body, "elapsed_ns");
  if (block.elapsed_ns > block.ended_ns - block.started_ns)
    wrong("elapsed_ns", "at most ended_ns - started_ns");
  return block;
}

Event read_event(const Json& line) {
  Event event;
  event.kind = text(line, "kind");
  if (const Json* side = find(line, "side")) event.side = as_side(*side, "side");
  event.text = text_or(line, "text", "");
  event.workload = text_or(line, "workload", "");
  if (find(line, "unit") != nullptr) event.unit = unit_name(line, "unit");
  event.reason = text_or(line, "reason", "");
  return event;
}

LogitsFacts read_logits(const Json& line) {
  LogitsFacts facts{text(line, "workload"), integer(line, "rows"), maybe_number(line, "top1_agreement_ratio"),
                    maybe_number(line, "kl_nats_mean")};
  if (facts.rows < 1) wrong("rows", "at least 1");
  const double agreement = facts.top1_agreement_ratio.value_or(0);
  if (agreement < 0 || agreement > 1) wrong("top1_agreement_ratio", "from 0 to 1");
  if (facts.kl_nats_mean.value_or(0) < 0) wrong("kl_nats_mean", "at least 0");
  return facts;
}

using LineReader = void (*)(const Json&, Record&);

struct LineType {
  const char* type;
  LineReader read;
};

constexpr std::array<LineType, 12> kLineTypes{{
    {"header", [](const Json& line, Record& r) { r.header = read_header(line); }},
    {"cache", [](const Json& line, Record& r) { r.cache = read_cache(line); }},
    {"engine", [](const Json& line, Record& r) { r.engines.push_back(read_engine(line)); }},
    {"model", [](const Json& line, Record& r) { r.models.push_back(read_model(line)); }},
    {"workload", [](const Json& line, Record& r) { r.workloads.push_back(read_workload(line)); }},
    {"graph", [](const Json& line, Record& r) { r.graphs.push_back(read_graph(line)); }},
    {"group", [](const Json& line, Record& r) { r.groups.push_back(small_integer(line, "group")); }},
    {"arms", [](const Json& line, Record& r) { r.arms.push_back(read_arms(line)); }},
    {"block", [](const Json& line, Record& r) { r.blocks.push_back(read_block(line)); }},
    {"logits", [](const Json& line, Record& r) { r.logits.push_back(read_logits(line)); }},
    {"event", [](const Json& line, Record& r) { r.events.push_back(read_event(line)); }},
    {"end", [](const Json& line, Record& r) { r.end_reason = text(line, "reason"); }},
}};

void read_line(const Json& line, int number, Record& record) {
  const std::string type = text(line, "type");
  if ((number == 1) != (type == "header"))
    throw Problem{"the first line, and only the first, must be the header: is this an opledger record?"};
  if (record.end_reason) throw Problem{"stands after the end line, which must be the last"};
  for (const LineType& known : kLineTypes) {
    if (type != known.type) continue;
    known.read(line, record);
    if (std::optional<std::string> misfit = misfit_of_last(type, record)) throw Problem{*misfit};
    return;
  }
  record.doubts.push_back(fmt::format("line {} has the unknown type \"{}\" and was ignored", number, type));
}

}  // namespace

Result<Record> parse_record(std::string_view text, std::string_view file_name) {
  Record record;
  int number = 0;
  while (!text.empty()) {
    ++number;
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const bool is_last = end == std::string_view::npos;
    text = is_last ? std::string_view{} : text.substr(end + 1);
    const Json json = Json::parse(line, nullptr, false);
    // Only a line without its newline can be one that a killed session left unfinished.
    if (json.is_discarded() && is_last && number > 1) {
      record.doubts.push_back(fmt::format("the last line ({}) was cut short and was ignored", number));
      break;
    }
    if (!json.is_object())
      return Error::bad_input(
          fmt::format("{}: line {} is not a JSON object: is this an opledger record?", file_name, number));
    try {
      read_line(json, number, record);
    } catch (const Problem& problem) {
      return Error::bad_input(fmt::format("{}: line {}: {}", file_name, number, problem.text));
    }
  }
  if (number == 0) return Error::bad_input(fmt::format("{}: is empty, no record was written", file_name));
  return record;
}

}  // namespace opledger::core
