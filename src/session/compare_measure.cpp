// Schedules measured, by one engine or by two that change places: what is asked, what comes back, where it is
// written.
#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "core/record/write.h"
#include "session/block_check.h"
#include "session/compare_session.h"

namespace opledger::session {
namespace {

using nlohmann::json;

/// Runs its engine for as long as it lives; at all other times engines are stopped.
class Awake {
 public:
  explicit Awake(Side& side) : side_(side) { side_.engine->resume(); }
  ~Awake() {
    if (side_.engine && !side_.engine->is_gone()) side_.engine->pause();
  }
  Awake(const Awake&) = delete;
  Awake& operator=(const Awake&) = delete;

 private:
  Side& side_;
};

double median_wall_ns(const json& block) {
  std::vector<double> walls;
  for (const json& pass : block.at("passes")) walls.push_back(pass.at("wall_ns"));
  std::sort(walls.begin(), walls.end());
  return walls[walls.size() / 2];
}

}  // namespace

/// A `measure` under way.
struct CompareSession::Measuring {
  Side* side = nullptr;
  size_t w = 0;
  std::vector<ScheduleEntry> schedule;
  bool is_recorded = true;
  bool is_begun = false, is_done = false;
  int64_t first_turn = 0;
  std::vector<ExpectedBlock> expected{};
  Blocks blocks{};
  double walls_ns = 0;
  int64_t awake_ns = 0;  ///< what it took, the other engine's bursts left out
};

Status CompareSession::take_block(Measuring& measuring, const json& block) {
  Side& side = *measuring.side;
  SideWorkload& known = side.workloads[measuring.w];
  const std::string& id = workloads_[measuring.w].facts.id;
  const ExpectedBlock& asked = measuring.expected[measuring.blocks.size()];
  if (Status status = check_block(block, id, asked, known.graph.unit_count()); !status) {
    return Error::failure(fmt::format("{}: {}", side.program.name, status.error().message));
  }
  const double wall_ns = median_wall_ns(block);
  measuring.walls_ns += wall_ns * asked.passes;
  if (!asked.is_verify && asked.arm == "baseline") known.pass_ns = std::max(wall_ns, 1.0);
  measuring.blocks.push_back(block);
  if (!measuring.is_recorded) return {};
  if (!asked.is_verify && asked.arm != "baseline") known.timed_blocks[asked.arm].push_back(block);
  const int64_t turn = measuring.first_turn + static_cast<int64_t>(asked.entry);
  const core::BlockPlace place{side.side, id, group_, known.rounds + 1, stint_, turn, ++sequence_};
  if (Status status = log_.append(core::block_line(place, block.dump())); !status) return status;
  return asked.is_verify ? Status{} : log_.settle();
}

Status CompareSession::begin(Measuring& measuring) {
  measuring.is_begun = true;
  measuring.first_turn = turn_;
  turn_ += static_cast<int64_t>(measuring.schedule.size());
  measuring.expected = expected_blocks(measuring.schedule);
  const Workload& workload = workloads_[measuring.w];
  return measuring.side->engine->begin(
      "measure", {{"workload", workload.facts.id}, {"schedule", to_json(measuring.schedule)}},
      {measuring.expected.size(), expected_holds(measuring.schedule, workload.steps()),
       [this, &measuring](const json& block) { return take_block(measuring, block); }});
}

Status CompareSession::advance(Measuring& measuring) {
  const int64_t started_ns = clock_.now_ns();
  if (Status status = measuring.is_begun ? Status{} : begin(measuring); !status) return status;
  const Result<std::optional<json>> reply = measuring.side->engine->advance();
  if (!reply) return reply.error();
  measuring.awake_ns += clock_.now_ns() - started_ns;
  if (!reply->has_value()) return {};
  measuring.is_done = true;
  if (measuring.blocks.size() != measuring.expected.size()) {
    return Error::failure(fmt::format("{}: measure was asked for {} blocks and sent {}",
                                      measuring.side->program.name, measuring.expected.size(),
                                      measuring.blocks.size()));
  }
  if (!measuring.schedule.front().is_verify && measuring.walls_ns > 0) {
    measuring.side->workloads[measuring.w].cost_ratio =
        static_cast<double>(measuring.awake_ns) / measuring.walls_ns;
  }
  return {};
}

Result<CompareSession::Blocks> CompareSession::measure(Side& side, size_t w,
                                                       const std::vector<ScheduleEntry>& schedule,
                                                       bool is_recorded) {
  Measuring measuring{&side, w, schedule, is_recorded};
  while (!measuring.is_done) {
    if (Status status = advance(measuring); !status) return status.error();
  }
  ++stint_;
  return std::move(measuring.blocks);
}

Status CompareSession::stint(Side& side, size_t w, const Stint& schedule) {
  const Awake awake(side);
  const Result<Blocks> blocks = measure(side, w, schedule, /*is_recorded=*/true);
  return blocks ? Status{} : Status{blocks.error()};
}

Status CompareSession::shared_stint(const std::array<std::pair<Side*, const Stint*>, 2>& sides, size_t w) {
  std::array<Measuring, 2> both{Measuring{sides[0].first, w, *sides[0].second},
                                Measuring{sides[1].first, w, *sides[1].second}};
  while (!both[0].is_done || !both[1].is_done) {
    for (Measuring& one : both) {
      if (one.is_done) continue;
      const Awake awake(*one.side);
      if (Status status = advance(one); !status) return status;
    }
  }
  ++stint_;
  return {};
}

}  // namespace opledger::session
