#include "report/view.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/plain_text.h"
#include "report/numbers.h"
#include "report/report.h"

namespace opledger::report {

namespace {

using core::Check;
using core::CheckStatus;
using core::Measured;
using core::WorkloadLedger;

std::string machine_text(const std::string& machine_json) {
  const auto machine = nlohmann::json::parse(machine_json, nullptr, false);
  if (!machine.is_object()) return {};
  std::string text = fmt::format("{}, {} cores", machine.value("cpu", std::string("unknown CPU")),
                                 machine.value("cores", 0));
  if (machine.contains("knee_bytes") && machine["knee_bytes"].is_number())
    text += fmt::format(", cache knee at {:.0f} MB", machine["knee_bytes"].get<double>() / 1e6);
  if (machine.contains("virtual") && machine["virtual"] == true) text += ", virtual machine";
  return text;
}

LineView total_line(const char* name, const Measured& a, const Measured& b, const Measured& gap) {
  LineView line{name,
                cost_text(a),
                cost_text(b),
                gap.ms ? signed_ms_text(*gap.ms) : "-",
                interval_text(gap.ci_ms),
                "",
                "",
                "",
                Tone::kPlain,
                {}};
  return line;
}

LineView side_line(const char* name, const Measured& a, const Measured& b, const Measured& gap) {
  LineView line{name,
                difference_text(a),
                difference_text(b),
                gap.ms ? signed_ms_text(*gap.ms) : "-",
                interval_text(gap.ci_ms),
                "",
                "",
                "",
                Tone::kQuiet,
                {}};
  return line;
}

LineView row_line(const core::Row& row) {
  LineView line{row.scope,
                cost_text(row.a),
                cost_text(row.b),
                gap_text(row.gap, row.noise_floor_ms),
                interval_text(row.gap.ci_ms),
                share_text(row.share_of_gap),
                row.evidence,
                row.is_real ? "yes" : "no",
                Tone::kPlain,
                row.notes};
  // Work that one engine does not have is no unknown.
  if (row.nodes_a == 0) line.a = "none";
  if (row.nodes_b == 0) line.b = "none";
  if (row.is_real) line.tone = *row.gap.ms > 0 ? Tone::kWorse : Tone::kBetter;
  return line;
}

std::vector<std::string> totals_text(const WorkloadLedger& w) {
  std::vector<std::string> out;
  std::string speeds = fmt::format("{} {} tok/s, {} {} tok/s", w.a.engine, rate_text(w.a.tokens_per_s),
                                   w.b.engine, rate_text(w.b.tokens_per_s));
  if (w.ratio) speeds += fmt::format("; time ratio {:.3f}", *w.ratio);
  if (w.ratio_ci) speeds += fmt::format(" [{:.3f}, {:.3f}]", (*w.ratio_ci)[0], (*w.ratio_ci)[1]);
  out.push_back(speeds);
  out.push_back(
      fmt::format("launch groups {} and {}, baseline passes {} and {}, dropped {} and {}; noise floor {}",
                  w.a.launch_groups, w.b.launch_groups, w.a.passes, w.b.passes, w.a.dropped, w.b.dropped,
                  w.noise_floor_ms ? ms_text(*w.noise_floor_ms) + " ms" : "unknown"));
  return out;
}

std::string before_colon(const std::string& text) {
  return text.substr(0, text.find(": "));
}

// The rows' clock checks that held, or that did not run, are one line each; those that failed stay whole.
void add_clock_checks(const WorkloadLedger& w, const std::string& engine, const std::string& label,
                      std::vector<CheckView>& out) {
  std::vector<std::string> held;
  std::vector<std::string> not_run;
  std::vector<CheckView> failed;
  for (const Check& check : w.checks) {
    if (check.name != "clocks agree" || check.engine != engine) continue;
    if (check.status == CheckStatus::kHeld)
      held.push_back(before_colon(check.text));
    else if (check.status == CheckStatus::kNotRun)
      not_run.push_back(before_colon(check.text));
    else
      failed.push_back({check.name, label, check.status, check.text});
  }
  if (!held.empty())
    out.push_back({"clocks agree", label, CheckStatus::kHeld, fmt::format("{}", fmt::join(held, ", "))});
  out.insert(out.end(), failed.begin(), failed.end());
  if (!not_run.empty())
    out.push_back({"clocks agree", label, CheckStatus::kNotRun,
                   fmt::format("{}: not replayed", fmt::join(not_run, ", "))});
}

std::vector<CheckView> check_views(const WorkloadLedger& w) {
  std::vector<CheckView> out;
  for (const Check& check : w.checks) {
    std::string label;
    if (!check.engine.empty()) label = check.engine == "a" ? w.a.engine : w.b.engine;
    if (check.name == "clocks agree") {
      const bool is_added = std::any_of(out.begin(), out.end(), [&](const CheckView& view) {
        return view.name == "clocks agree" && view.engine == label;
      });
      if (!is_added) add_clock_checks(w, check.engine, label, out);
      continue;
    }
    // Two engines to which the same happened share a line.
    if (!out.empty() && out.back().name == check.name && out.back().status == check.status &&
        out.back().text == check.text) {
      out.back().engine.clear();
      continue;
    }
    out.push_back({check.name, label, check.status, check.text});
  }
  return out;
}

WorkloadView workload_view(const WorkloadLedger& w) {
  WorkloadView view;
  view.title = w.is_per_token ? fmt::format("{}: ms per token, cycles of {}", w.name, w.tokens)
                              : fmt::format("{}: ms per pass of {} tokens", w.name, w.tokens);
  view.headline = headline(w);
  view.totals = totals_text(w);
  view.engine_a = w.a.engine;
  view.engine_b = w.b.engine;
  view.share_title = "share";
  view.totals_lines = {total_line("wall", w.a.wall, w.b.wall, w.gap),
                       total_line("graph", w.a.graph, w.b.graph, w.graph_gap)};
  for (const core::Row& row : w.rows) view.rows.push_back(row_line(row));
  view.lines = {side_line("wall - graph", w.wall_minus_graph_a, w.wall_minus_graph_b, w.wall_minus_graph_gap),
                side_line("unexplained", w.unexplained_a, w.unexplained_b, w.unexplained_gap)};
  if (w.barrier_a.ms || w.barrier_b.ms) {
    LineView barriers = side_line("of it barriers", w.barrier_a, w.barrier_b, w.barrier_gap);
    barriers.notes = {"what one more empty node per unit costs; already inside the rows"};
    view.lines.push_back(barriers);
  }
  view.checks = check_views(w);
  view.next = w.next;
  view.leave = w.leave;
  view.caveats = w.not_solid;
  return view;
}

void make_plain(std::vector<std::string>& texts) {
  for (std::string& text : texts) text = plain_text(text);
}

void make_plain(std::vector<LineView>& lines) {
  for (LineView& line : lines) {
    line.name = plain_text(line.name);
    line.evidence = plain_text(line.evidence);
    make_plain(line.notes);
  }
}

void make_plain(WorkloadView& view) {
  for (std::string* text : {&view.title, &view.headline, &view.engine_a, &view.engine_b})
    *text = plain_text(*text);
  for (auto* texts : {&view.totals, &view.next, &view.leave, &view.caveats}) make_plain(*texts);
  for (auto* lines : {&view.totals_lines, &view.rows, &view.lines}) make_plain(*lines);
  for (CheckView& check : view.checks) {
    check.engine = plain_text(check.engine);
    check.text = plain_text(check.text);
  }
}

}  // namespace

ReportView view_of(const core::Ledger& ledger) {
  ReportView view;
  view.title = fmt::format("{} against {}", ledger.engine_a, ledger.engine_b);
  view.machine = machine_text(ledger.machine_json);
  view.differs = ledger.differs;
  for (const WorkloadLedger& workload : ledger.workloads) view.workloads.push_back(workload_view(workload));
  view.title = plain_text(view.title);
  view.machine = plain_text(view.machine);
  make_plain(view.differs);
  for (WorkloadView& workload : view.workloads) make_plain(workload);
  return view;
}

}  // namespace opledger::report
