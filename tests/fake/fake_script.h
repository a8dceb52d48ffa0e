// What a fake engine is told to be: a JSON file beside its executable, "NAME.json" for a program called NAME,
// so that two links to one binary are two different engines. Every key is optional.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace opledger::fake {

/// Something that goes wrong at the `at`-th message (counting from 1) of `method`.
struct Fault {
  std::string method;
  int at = 1;
  /// die, abort, hang, garbage, wrong_id, flood_line, flood_blocks, flood_holds, error, exit_on_probe
  std::string act;
};

struct Script {
  std::string protocol = "2";
  std::string family = "llama.cpp";
  std::string architecture = "llama";
  int layers = 2;
  int64_t vocab_tokens = 64;
  int64_t memory_bytes = 1 << 20;
  uint64_t seed = 1;
  double noise_ratio = 0.0;  ///< standard deviation of every unit's time, as a share of it
  /// Planted nanoseconds per token, by role ("attn_q"), else by op ("MUL_MAT"), else "default".
  std::map<std::string, double> ns_per_token;
  int64_t price_ns = 200;      ///< of one stamp, per call
  int64_t outside_ns = 50000;  ///< wall minus graph
  double overlap_ratio = 1.0;  ///< graph time over the sum of its units
  double copy_ratio = 1.0;     ///< what a copy costs, over its original
  bool forgets_last_layer = false;
  bool copies_attention = false;    ///< a CONT follows every FLASH_ATTN_EXT
  std::vector<int> breaking_units;  ///< a replay that holds one of these changes the digest
  std::vector<int> crowded_units;   ///< the same, but only while more than two arms are prepared
  std::vector<int> damaging_units;  ///< a replay that holds one of these damages lasting memory
  std::vector<int> refused_units;   ///< prepare refuses to replay these
  bool stamp_changes_digest = false;
  bool splits_units = false;  ///< takes fused nodes for single ones
  bool never_holds = false;   ///< between bursts
  bool cannot_plant = false;  ///< has neither the capability `plant` nor `faults`
  bool miscounts_plant = false;
  bool ignores_plant = false;  ///< counts planted work, and does not do it
  bool ignores_faults = false;
  bool state_changes = false;  ///< replays damage lasting memory
  double logit_shift = 0.0;    ///< moves this engine's logits away from the other's
  std::vector<Fault> faults;
};

/// Reads the script of the program at `program_path`; the defaults when there is none.
Script read_script(const std::string& program_path);

}  // namespace opledger::fake
