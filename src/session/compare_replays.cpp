// Replays prepared and checked: what to do when one changes the result. Also the session's outline.
#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "core/record/write.h"
#include "session/bisect.h"
#include "session/compare_session.h"

namespace opledger::session {
namespace {

using nlohmann::json;

constexpr int kMaxBisectTests = 64;

/// Digests of the first pass and of lasting memory, and whether the logits are numbers: what must not change.
bool keeps_result(const json& baseline, const json& block) {
  const auto rows_of = [](const json& b) {
    return b.at("digests").at(b.at("passes").at(0).at("digest").get<size_t>());
  };
  return block.at("logits") == baseline.at("logits") && rows_of(block) == rows_of(baseline) &&
         block.value("state_digest", json()) == baseline.value("state_digest", json());
}

}  // namespace

CompareSession::CompareSession(const CompareOptions& options, const platform::Clock& clock,
                               const platform::Interrupt& interrupt, Progress& progress, RecordLog& log,
                               std::array<Side, 2> sides, int64_t needed_tokens)
    : options_(options),
      clock_(clock),
      interrupt_(interrupt),
      progress_(progress),
      log_(log),
      sides_(std::move(sides)),
      needed_tokens_(needed_tokens),
      started_ns_(clock.now_ns()),
      end_ns_(started_ns_ + static_cast<int64_t>(options.budget_s * 1e9)),
      context_tokens_(std::max<int64_t>(needed_tokens, 64)),
      random_(options.seed) {}

double CompareSession::left_ns() const {
  return static_cast<double>(end_ns_ - clock_.now_ns());
}

EngineContext CompareSession::context() const {
  EngineContext context;
  context.clock = &clock_;
  context.interrupt_fd = interrupt_.fd();
  context.request_limit_ns = options_.engine_limit_ns;
  context.log_folder = options_.log_folder;
  context.max_message_bytes = options_.max_message_bytes;
  return context;
}

Status CompareSession::note(const char* kind, const Side* side, const std::string& text,
                            const std::string& workload) {
  core::Event event;
  event.kind = kind;
  if (side != nullptr) event.side = side->side;
  event.text = text;
  event.workload = workload;
  progress_.say(text);
  return log_.append(core::record_line(event));
}

Result<std::string> CompareSession::run() {
  if (Status status = write_facts(); !status) return status.error();
  for (Side& side : sides_) side.may_probe = !options_.totals_only;
  std::array<std::vector<std::vector<float>>, 2> logits;
  for (size_t s = 0; s < sides_.size(); ++s) {
    if (Status status = discover(sides_[s], logits[s]); !status) return status.error();
  }
  if (Status status = write_agreement(logits); !status) return status.error();
  if (Status status = scope_all(); !status) return status.error();
  if (Status status = plant_work(); !status) return status.error();
  if (Status status = plan(); !status) return status.error();
  if (Status status = run_groups(); !status) return status.error();
  for (const NotRun& one : not_run_) {
    const std::string text = fmt::format("not run within the budget: {}", one.what);
    if (Status status = note("budget", nullptr, text, one.workload); !status) return status.error();
  }
  const bool is_whole = not_run_.empty() && plan_.fits && !is_overdue();
  return std::string(is_whole ? "complete" : "budget");
}

Status CompareSession::run_groups() {
  double longest_ns = 0;
  for (int group = 1; group <= plan_.groups; ++group) {
    const int64_t begun_ns = clock_.now_ns();
    // A group that would end far beyond the budget is not begun; a little overtime buys the third one.
    const double overtime_ns = group <= 3 ? 0.15e9 * options_.budget_s : 0;
    if (group > 1 && left_ns() + overtime_ns < 0.5 * longest_ns) {
      // Groups beyond the third were only ever a way to use spare time.
      if (group <= 3) not_run_.push_back({fmt::format("launch groups {} to {}", group, plan_.groups), ""});
      break;
    }
    if (Status status = run_group(group); !status) return status;
    longest_ns = std::max(longest_ns, static_cast<double>(clock_.now_ns() - begun_ns));
    if (options_.is_enough && options_.is_enough(log_.text())) {
      progress_.say(fmt::format("enough is known after {} launch groups", group));
      break;
    }
    add_brackets();
  }
  return {};
}

Result<json> CompareSession::ask_prepare(Side& side, size_t w, const std::vector<ArmPlan>& arms) {
  json asked = json::array();
  for (const ArmPlan& arm : arms) asked.push_back(arm.to_json(/*for_record=*/false));
  Result<json> reply = side.engine->call("prepare", {{"workload", workloads_[w].facts.id}, {"arms", asked}});
  if (!reply) return reply;
  const json given = reply->is_object() ? reply->value("arms", json()) : json();
  if (!given.is_array() || given.size() != arms.size()) {
    return Error::failure(fmt::format("{}: its reply to prepare does not list the arms that were asked for",
                                      side.program.name));
  }
  return reply;
}

Status CompareSession::prepare(Side& side, size_t w) {
  side.engine->resume();
  SideWorkload& known = side.workloads[w];
  Result<json> reply = ask_prepare(side, w, known.arms);
  if (!reply) return reply.error();
  bool has_changed = false;
  for (size_t i = 0; i < known.arms.size(); ++i) {
    if (!known.arms[i].is_replay()) continue;
    has_changed |=
        settle_weights(known.graph, reply->at("arms").at(i), side.can_give("shadow"), known.arms[i]);
  }
  if (has_changed) {
    reply = ask_prepare(side, w, known.arms);
    if (!reply) return reply.error();
  }
  core::ArmsFacts facts;
  facts.side = side.side;
  facts.workload = workloads_[w].facts.id;
  facts.group = group_;
  json asked = json::array();
  for (const ArmPlan& arm : known.arms) asked.push_back(arm.to_json(/*for_record=*/true));
  facts.arms_json = asked.dump();
  facts.prepared_json = reply->dump();
  side.engine->pause();
  return log_.append(core::record_line(facts));
}

Status CompareSession::check_replays(Side& side, size_t w) {
  SideWorkload& known = side.workloads[w];
  // An arm that lost units is another arm, so it is looked at again. Ends: each turn takes units or an arm.
  while (true) {
    ScheduleEntry entry{{"baseline"}, 1, true};
    if (Status status = prepare(side, w); !status) return status;
    for (const ArmPlan& arm : known.arms) {
      if (arm.is_replay() && known.checked_arms.count(arm.id) == 0) entry.arms.push_back(arm.id);
    }
    if (entry.arms.size() == 1) return {};
    side.engine->resume();
    Result<Blocks> blocks = measure(side, w, {entry}, /*is_recorded=*/true);
    if (!blocks) return blocks.error();
    std::set<std::string> broken;
    for (size_t i = 1; i < entry.arms.size(); ++i) {
      known.checked_arms.insert(entry.arms[i]);
      if (keeps_result(blocks->front(), (*blocks)[i])) continue;
      broken.insert(entry.arms[i]);
      if (Status status = bisect(side, w, entry.arms[i], blocks->front()); !status) return status;
    }
    side.engine->pause();
    if (broken.empty()) return {};
    if (Status status = mend_arms(side, w, broken); !status) return status;
  }
}

Status CompareSession::mend_arms(Side& side, size_t w, const std::set<std::string>& broken) {
  SideWorkload& known = side.workloads[w];
  std::set<std::string> hopeless = broken;
  for (ArmPlan& arm : known.arms) {
    const size_t lost = std::erase_if(
        arm.units, [&](const AskedUnit& asked) { return known.excluded.count(asked.unit) > 0; });
    if (lost == 0) continue;
    hopeless.erase(arm.id);
    known.checked_arms.erase(arm.id);
  }
  std::erase_if(known.arms, [&](const ArmPlan& arm) {
    return arm.is_replay() && (arm.units.empty() || hopeless.count(arm.id) > 0);
  });
  for (const std::string& id : hopeless) {
    // Should a later group want it again, it is looked at again.
    known.checked_arms.erase(id);
    const std::string text =
        fmt::format("{} in {}: {} changes the result, but no unit of it does; it is left out",
                    side.program.name, workloads_[w].facts.id, id);
    if (Status status = note("note", &side, text); !status) return status;
  }
  return {};
}

Status CompareSession::bisect(Side& side, size_t w, const std::string& arm_id, const json& baseline) {
  const SideWorkload& known = side.workloads[w];
  const ArmPlan arm = *std::find_if(known.arms.begin(), known.arms.end(),
                                    [&](const ArmPlan& one) { return one.id == arm_id; });
  std::vector<core::UnitName> units;
  for (const AskedUnit& asked : arm.units) {
    if (known.excluded.count(asked.unit) == 0) units.push_back(asked.unit);
  }
  progress_.show(
      fmt::format("{}: {} changes the result, looking for the units that do", side.program.name, arm.id));
  const auto test = [&](const std::vector<core::UnitName>& subset) -> Result<bool> {
    ArmPlan part = arm;
    const std::set<core::UnitName> wanted(subset.begin(), subset.end());
    std::erase_if(part.units, [&](const AskedUnit& asked) { return wanted.count(asked.unit) == 0; });
    ArmPlan plain;
    plain.id = plain.kind = "baseline";
    Result<json> reply = ask_prepare(side, w, {plain, part});
    if (!reply) return reply.error();
    Result<Blocks> blocks = measure(side, w, {{{part.id}, 1, true}}, /*is_recorded=*/false);
    if (!blocks) return blocks.error();
    return keeps_result(baseline, blocks->front());
  };
  if (units.empty()) return {};
  // The other kind of the same replay may have been broken by units that are excluded by now.
  Result<bool> is_mended = test(units);
  if (!is_mended) return is_mended.error();
  if (*is_mended) return {};
  Result<Breaking> breaking = find_breaking_units(units, test, kMaxBisectTests);
  if (!breaking) return breaking.error();
  if (Status status = exclude(side, w, breaking->alone, "a copy of it changes the result"); !status)
    return status;
  return exclude(side, w, breaking->together, "copies of it and of other units together change the result");
}

Status CompareSession::exclude(Side& side, size_t w, const std::vector<core::UnitName>& units,
                               const std::string& reason) {
  for (const core::UnitName& unit : units) {
    side.workloads[w].excluded.insert(unit);
    core::Event event;
    event.kind = "excluded";
    event.side = side.side;
    event.workload = workloads_[w].facts.id;
    event.unit = unit;
    event.reason = reason;
    const core::Graph& graph = side.workloads[w].graph.graphs[static_cast<size_t>(unit.graph)];
    const int node = graph.units[static_cast<size_t>(unit.unit)].nodes.front();
    event.text = fmt::format("{} in {}: {} cannot be replayed", side.program.name, event.workload,
                             graph.nodes[static_cast<size_t>(node)].name);
    if (Status status = log_.append(core::record_line(event)); !status) return status;
  }
  return {};
}

}  // namespace opledger::session
