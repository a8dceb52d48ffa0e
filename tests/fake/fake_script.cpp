// Defaults stay where the file says nothing. A script that does not parse is a bug of the test: it throws.
#include "fake_script.h"

#include <filesystem>
#include <fstream>

namespace opledger::fake {

Script read_script(const std::string& program_path) {
  Script script;
  const std::string path = program_path + ".json";
  if (!std::filesystem::exists(path)) return script;
  std::ifstream file(path);
  const nlohmann::json text = nlohmann::json::parse(file);
  const auto take = [&](const char* key, auto& field) {
    if (text.contains(key)) text.at(key).get_to(field);
  };
  take("protocol", script.protocol);
  take("family", script.family);
  take("architecture", script.architecture);
  take("layers", script.layers);
  take("vocab_tokens", script.vocab_tokens);
  take("memory_bytes", script.memory_bytes);
  take("seed", script.seed);
  take("noise_ratio", script.noise_ratio);
  take("ns_per_token", script.ns_per_token);
  take("price_ns", script.price_ns);
  take("outside_ns", script.outside_ns);
  take("overlap_ratio", script.overlap_ratio);
  take("copy_ratio", script.copy_ratio);
  take("forgets_last_layer", script.forgets_last_layer);
  take("copies_attention", script.copies_attention);
  take("breaking_units", script.breaking_units);
  take("crowded_units", script.crowded_units);
  take("damaging_units", script.damaging_units);
  take("refused_units", script.refused_units);
  take("stamp_changes_digest", script.stamp_changes_digest);
  take("splits_units", script.splits_units);
  take("never_holds", script.never_holds);
  take("cannot_plant", script.cannot_plant);
  take("miscounts_plant", script.miscounts_plant);
  take("ignores_plant", script.ignores_plant);
  take("ignores_faults", script.ignores_faults);
  take("state_changes", script.state_changes);
  take("logit_shift", script.logit_shift);
  for (const nlohmann::json& fault : text.value("faults", nlohmann::json::array())) {
    script.faults.push_back({fault.at("method"), fault.value("at", 1), fault.at("act")});
  }
  return script;
}

}  // namespace opledger::fake
