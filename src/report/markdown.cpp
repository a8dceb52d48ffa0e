// The same view as Markdown tables and lists.
#include <fmt/format.h>

#include "report/renderers.h"

namespace opledger::report {

namespace {

// What a table cell or a list item must not start or end by accident.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '*' || c == '_' || c == '`' || c == '<' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

void add_list(std::string& out, const char* title, const std::vector<std::string>& items) {
  if (items.empty()) return;
  out += fmt::format("\n{}\n\n", title);
  for (const std::string& item : items) out += fmt::format("- {}\n", escaped(item));
}

void add_line(std::string& out, const LineView& line, bool is_strong) {
  const char* mark = is_strong ? "**" : "";
  out += fmt::format("| {}{}{} | {} | {} | {}{}{} | {} | {} | {} | {} |\n", mark, escaped(line.name), mark,
                     escaped(line.a), escaped(line.b), mark, escaped(line.gap), mark, escaped(line.interval),
                     line.share, line.evidence, line.real);
}

void add_workload(std::string& out, const WorkloadView& view) {
  out += fmt::format("\n## {}\n\n{}\n\n", escaped(view.title), escaped(view.headline));
  for (const std::string& line : view.totals) out += fmt::format("- {}\n", escaped(line));
  out += fmt::format("\n| row | {} | {} | gap | 95% interval | {} | by | real |\n", escaped(view.engine_a),
                     escaped(view.engine_b), view.share_title);
  out += "|---|---:|---:|---:|---:|---:|---|---|\n";
  for (const LineView& line : view.totals_lines) add_line(out, line, false);
  for (const LineView& line : view.rows) add_line(out, line, line.real == "yes");
  for (const LineView& line : view.lines) add_line(out, line, false);
  add_list(out, "What the graphs execute differently:", view.graph_changes);
  if (!view.checks.empty()) out += "\n| check | engine | status | figure |\n|---|---|---|---|\n";
  for (const CheckView& check : view.checks) {
    out += fmt::format("| {} | {} | {} | {} |\n", check.name, escaped(check.engine),
                       core::check_status_name(check.status), escaped(check.text));
  }
  std::vector<std::string> notes;
  for (const auto* lines : {&view.rows, &view.lines}) {
    for (const LineView& line : *lines) {
      for (const std::string& note : line.notes) notes.push_back(line.name + ": " + note);
    }
  }
  add_list(out, "Notes:", notes);
  add_list(out, "Next:", view.next);
  add_list(out, "Leave alone:", view.leave);
  add_list(out, "Not solid:", view.caveats);
}

}  // namespace

std::string render_markdown(const ReportView& view) {
  std::string out = fmt::format("# {}\n", escaped(view.title));
  if (!view.machine.empty()) out += fmt::format("\n{}\n", escaped(view.machine));
  add_list(out, "What differs between the two sides:", view.differs);
  for (const WorkloadView& workload : view.workloads) add_workload(out, workload);
  if (view.workloads.empty())
    out += "\nThe record holds no workload: the session ended before it measured.\n";
  return out;
}

}  // namespace opledger::report
