// The lines of a record, one function per type, each without its newline. Writing them to a file is
// platform/record_file.h's work.
#pragma once

#include <string>
#include <string_view>

#include "core/record/record.h"

namespace opledger::core {

std::string record_line(const Header& header);
std::string record_line(const CacheProbe& cache);
/// The `*_json` members go in as they are: each must be one JSON value (anything else is our bug).
std::string record_line(const EngineFacts& engine);
std::string record_line(const ModelLine& model);
std::string record_line(const WorkloadFacts& workload);
std::string record_line(const GraphFacts& graph);
std::string record_line(const ArmsFacts& arms);
std::string record_line(const LogitsFacts& logits);
std::string record_line(const Event& event);
/// A block from its parts.
std::string record_line(const Block& block);
/// A block as the engine sent it: `block_json` is the notification's `params`, one JSON object.
std::string block_line(const BlockPlace& place, std::string_view block_json);
std::string group_line(int group);
/// `reason`: complete, budget, interrupted, failed.
std::string end_line(std::string_view reason);

}  // namespace opledger::core
