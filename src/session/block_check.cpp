// Every key the record's reader relies on.
#include "session/block_check.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/record/record.h"

namespace opledger::session {
namespace {

using nlohmann::json;

Error bad_key(const char* key, const char* what) {
  return Error::failure(fmt::format("a block of a measurement is wrong: \"{}\" {}", key, what));
}

bool is_time(const json& value) {
  return value.is_number_integer() && value.get<int64_t>() >= 0;
}

bool is_duration(const json& value) {
  return is_time(value) && value.get<int64_t>() <= core::kMostPassNs;
}

bool is_list_of(const json& value, size_t count) {
  return value.is_array() && value.size() == count && std::all_of(value.begin(), value.end(), is_duration);
}

/// Either null, or one array of `units` times per pass.
bool is_unit_table(const json& value, size_t passes, size_t units) {
  return value.is_null() ||
         (value.is_array() && value.size() == passes &&
          std::all_of(value.begin(), value.end(), [&](const json& pass) { return is_list_of(pass, units); }));
}

bool is_digest(const json& value) {
  return value.is_string() && value.get_ref<const std::string&>().size() == 32;
}

/// Either absent, or a pass's graph time by steps.
bool are_steps_of(const json& steps, int64_t graph_ns) {
  if (steps.is_null()) return true;
  if (!steps.is_array()) return false;
  for (const json& ns : steps) {
    if (!is_duration(ns) || ns == 0 || ns.get<int64_t>() > graph_ns) return false;
    graph_ns -= ns.get<int64_t>();
  }
  return graph_ns == 0;
}

Status check_pass_times(const json& block) {
  for (const json& pass : block.at("passes")) {
    const auto graph_ns = pass.at("graph_ns").get<int64_t>();
    if (graph_ns < 1 || graph_ns > pass.at("wall_ns").get<int64_t>())
      return bad_key("graph_ns", "of a timed pass is not from 1 to its wall_ns");
    if (!are_steps_of(pass.value("step_graph_ns", json()), graph_ns))
      return bad_key("step_graph_ns", "is no list of times above 0 that add up to graph_ns");
  }
  return {};
}

Status check_passes(const json& block, size_t passes) {
  const json digests = block.value("digests", json());
  if (!digests.is_array() || digests.empty()) return bad_key("digests", "is no list");
  for (const json& rows : digests) {
    if (!rows.is_array() || rows.empty() || !std::all_of(rows.begin(), rows.end(), is_digest)) {
      return bad_key("digests", "holds something other than 32 hex digits per row, or no row");
    }
  }
  const json list = block.value("passes", json());
  if (!list.is_array() || list.size() != passes)
    return bad_key("passes", "has not as many passes as were asked for");
  for (const json& pass : list) {
    if (!pass.is_object()) return bad_key("passes", "holds something other than objects");
    for (const char* key : {"wall_ns", "graph_ns", "instrument_ns"}) {
      if (!is_duration(pass.value(key, json())))
        return bad_key(key, "of a pass is no time from 0 to 10^15 ns");
    }
    if (!is_time(pass.value("digest", json()))) return bad_key("digest", "of a pass is no integer from 0 up");
    if (pass.at("digest").get<size_t>() >= digests.size())
      return bad_key("digest", "of a pass is beyond the digests");
  }
  return {};
}

Status check_threads(const json& block) {
  const json threads = block.value("threads", json());
  if (!threads.is_array()) return bad_key("threads", "is no list");
  for (const json& thread : threads) {
    const json delay = thread.is_object() ? thread.value("run_delay_ns", json()) : json();
    if (!thread.is_object() || !is_duration(thread.value("cpu_ns", json())) ||
        !(delay.is_null() || is_duration(delay))) {
      return bad_key("threads", "holds something other than cpu_ns and run_delay_ns");
    }
  }
  return {};
}

// Without all three nobody can see that the stamps add up to the pass.
Status check_stamps(const json& block) {
  for (const char* key : {"unit_ns", "head_ns", "tail_ns"}) {
    if (block.value(key, json()).is_null()) return bad_key(key, "is missing in a stamped arm");
  }
  return {};
}

Status check_shared_inputs(const json& block) {
  const json shared = block.value("shared_inputs", json());
  if (shared.is_null() || shared == 0) return {};
  return bad_key("shared_inputs",
                 "is not 0: a copy could join its original's run, and its time means nothing");
}

Status check_planted(const json& block) {
  const json planted = block.value("planted", json());
  if (planted.is_null()) return {};
  for (const char* key : {"spins", "spun_ns", "late_spins", "late_ns"}) {
    if (!planted.is_object() || !is_duration(planted.value(key, json())))
      return bad_key("planted", "does not count its spins");
  }
  const bool is_possible =
      planted.at("late_spins") <= planted.at("spins") && planted.at("late_ns") <= planted.at("spun_ns");
  return is_possible ? Status{} : Status{bad_key("planted", "has more late spins than spins")};
}

Status check_unit_times(const json& block, size_t units) {
  const size_t steps = steps_of(block).size();
  for (const char* key : {"unit_ns", "copy_ns"}) {
    if (!is_unit_table(block.value(key, json()), steps, units))
      return bad_key(key, "is not one time per unit and step");
  }
  for (const char* key : {"head_ns", "tail_ns"}) {
    const json value = block.value(key, json());
    if (!value.is_null() && !is_list_of(value, steps)) return bad_key(key, "is not one time per step");
  }
  return {};
}

Status check_surroundings(const json& block) {
  if (Status status = check_shared_inputs(block); !status) return status;
  if (Status status = check_planted(block); !status) return status;
  if (Status status = check_threads(block); !status) return status;
  for (const char* key : {"voluntary_switches", "involuntary_switches"}) {
    const json value = block.value(key, json());
    if (!value.is_null() && !is_time(value)) return bad_key(key, "is no count");
  }
  if (!is_time(block.value("started_ns", json())) || !is_time(block.value("ended_ns", json()))) {
    return bad_key("started_ns", "or ended_ns is no time");
  }
  if (block.at("ended_ns").get<int64_t>() < block.at("started_ns").get<int64_t>())
    return bad_key("ended_ns", "lies before started_ns");
  if (!is_time(block.value("elapsed_ns", json()))) return bad_key("elapsed_ns", "is no time");
  if (block.at("elapsed_ns").get<int64_t>() >
      block.at("ended_ns").get<int64_t>() - block.at("started_ns").get<int64_t>())
    return bad_key("elapsed_ns", "is longer than from started_ns to ended_ns");
  return {};
}

}  // namespace

std::vector<json> steps_of(const json& block) {
  std::vector<json> steps;
  for (const json& pass : block.at("passes")) {
    const json told = pass.value("step_graph_ns", json());
    if (told.is_array() && !told.empty()) {
      steps.insert(steps.end(), told.begin(), told.end());
    } else {
      steps.push_back(pass.at("graph_ns"));
    }
  }
  return steps;
}

Status check_block(const json& block, const std::string& workload, const ExpectedBlock& asked, size_t units) {
  if (!block.is_object()) return bad_key("params", "is no object");
  if (block.value("workload", json()) != workload)
    return bad_key("workload", "is not the one that was asked for");
  if (block.value("arm", json()) != asked.arm) return bad_key("arm", "is not the next of the schedule");
  if (block.value("verify", json()) != asked.is_verify) return bad_key("verify", "is not as asked");
  const auto passes = static_cast<size_t>(asked.passes);
  if (Status status = check_passes(block, passes); !status) return status;
  const json logits = block.value("logits", json());
  if (logits != "ok" && logits != "not_finite" && logits != "constant")
    return bad_key("logits", "is no known word");
  if (Status status = check_unit_times(block, units); !status) return status;
  const json state = block.value("state_digest", json());
  if (!state.is_null() && !is_digest(state)) return bad_key("state_digest", "is no 32 hex digits");
  if (!asked.is_verify) {
    if (Status status = check_pass_times(block); !status) return status;
    if (Status status = core::is_stamped(asked.arm) ? check_stamps(block) : Status{}; !status) return status;
  }
  return check_surroundings(block);
}

}  // namespace opledger::session
