// Looks only at the line that came last: all before it were looked at in their turn.
#include "core/record/consistency.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

namespace opledger::core {

namespace {

using Misfit = std::optional<std::string>;

template <typename Line>
bool is_side_twice(const std::vector<Line>& lines) {
  return std::any_of(lines.begin(), lines.end() - 1,
                     [&](const Line& line) { return line.side == lines.back().side; });
}

Misfit misfit_of_workload(const Record& record) {
  const std::string& id = record.workloads.back().id;
  const bool is_twice = std::any_of(record.workloads.begin(), record.workloads.end() - 1,
                                    [&](const WorkloadFacts& known) { return known.id == id; });
  if (!is_twice) return std::nullopt;
  return fmt::format("key \"id\": a workload line of \"{}\" stands there already", id);
}

Misfit misfit_of_group(const Record& record) {
  const size_t count = record.groups.size();
  if (count < 2 || record.groups[count - 2] < record.groups.back()) return std::nullopt;
  return fmt::format("key \"group\": {} does not come after {}", record.groups.back(),
                     record.groups[count - 2]);
}

Misfit misfit_of_block(const Record& record) {
  const BlockPlace& place = record.blocks.back().place;
  if (record.workload(place.workload) == nullptr)
    return fmt::format("key \"workload\": no workload line of \"{}\" stands before this block",
                       place.workload);
  if (record.groups.empty() || record.groups.back() != place.group)
    return fmt::format("key \"group\": {} is not the group of the last group line", place.group);
  const size_t count = record.blocks.size();
  if (count < 2) return std::nullopt;
  const BlockPlace& before = record.blocks[count - 2].place;
  if (before.sequence >= place.sequence)
    return fmt::format("key \"sequence\": {} does not come after {}", place.sequence, before.sequence);
  const bool is_same_stretch =
      before.workload == place.workload && before.group == place.group && before.round == place.round;
  const bool is_same_place = is_same_stretch && before.side == place.side;
  if (before.stint > place.stint)
    return fmt::format("key \"stint\": {} comes after {}", place.stint, before.stint);
  if (before.turn > place.turn)
    return fmt::format("key \"turn\": {} comes after {}", place.turn, before.turn);
  if (before.stint == place.stint && !is_same_stretch)
    return fmt::format("key \"stint\": {} is of another workload, group or round already", place.stint);
  if (before.turn == place.turn && !is_same_place)
    return fmt::format("key \"turn\": {} is of another side, workload, group or round already", place.turn);
  return std::nullopt;
}

Misfit misfit_of_end(const Record& record) {
  constexpr std::array<std::string_view, 4> kReasons{"complete", "budget", "interrupted", "failed"};
  if (std::find(kReasons.begin(), kReasons.end(), *record.end_reason) != kReasons.end()) return std::nullopt;
  return fmt::format("key \"reason\" is not one of {}", fmt::join(kReasons, ", "));
}

}  // namespace

std::optional<std::string> misfit_of_last(std::string_view type, const Record& record) {
  if (type == "engine" && is_side_twice(record.engines))
    return fmt::format("key \"side\": an engine line of side {} stands there already",
                       side_name(record.engines.back().side));
  if (type == "model" && is_side_twice(record.models))
    return fmt::format("key \"side\": a model line of side {} stands there already",
                       side_name(record.models.back().side));
  if (type == "workload") return misfit_of_workload(record);
  if (type == "group") return misfit_of_group(record);
  if (type == "block") return misfit_of_block(record);
  if (type == "end") return misfit_of_end(record);
  return std::nullopt;
}

}  // namespace opledger::core
