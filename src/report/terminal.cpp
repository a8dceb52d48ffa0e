// A table within 100 columns; longer text is folded at blanks.
#include <array>
#include <cstddef>
#include <fmt/format.h>

#include "report/numbers.h"
#include "report/renderers.h"

namespace opledger::report {

namespace {

constexpr size_t kWidth = 100;
// name, a, b, gap, interval, share, evidence, real; one blank between, two before.
constexpr std::array<size_t, 8> kColumns{16, 16, 16, 8, 19, 5, 6, 4};

class Terminal {
 public:
  explicit Terminal(bool has_colour) : has_colour_(has_colour) {}

  void line(const std::string& text, Tone tone = Tone::kPlain) { out_ += coloured(text, tone) + "\n"; }
  void heading(const std::string& text) {
    out_ += (has_colour_ ? "\x1b[1m" + text + "\x1b[0m" : text) + "\n";
  }
  void blank() { out_ += "\n"; }

  /// `first` begins the first line, blanks of its width the others.
  void folded(const std::string& first, const std::string& text, Tone tone = Tone::kPlain) {
    const std::string indent(columns_of(first), ' ');
    std::string current = first;
    bool is_empty = true;
    size_t at = 0;
    while (at < text.size()) {
      size_t end = text.find(' ', at);
      if (end == std::string::npos) end = text.size();
      const std::string word = text.substr(at, end - at);
      at = end + 1;
      if (!is_empty && columns_of(current) + 1 + columns_of(word) > kWidth) {
        line(current, tone);
        current = indent;
        is_empty = true;
      }
      current += (is_empty ? "" : " ") + word;
      is_empty = false;
    }
    line(current, tone);
  }

  void table_line(const LineView& view) {
    const std::array<const std::string*, 8> cells{&view.name,     &view.a,     &view.b,        &view.gap,
                                                  &view.interval, &view.share, &view.evidence, &view.real};
    std::string text = "  ";
    const bool is_long = columns_of(view.name) > kColumns[0];
    if (is_long) line("  " + view.name, view.tone);
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string cell = i == 0 && is_long ? "" : *cells[i];
      const size_t columns = columns_of(cell);
      const std::string padding(columns < kColumns[i] ? kColumns[i] - columns : 0, ' ');
      // Names and words read from the left, numbers from the right.
      const bool is_word = i == 0 || i >= 6;
      text += (i == 0 ? "" : " ") + (is_word ? cell + padding : padding + cell);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    line(text, view.tone);
  }

  [[nodiscard]] std::string text() const { return out_; }

 private:
  [[nodiscard]] std::string coloured(const std::string& text, Tone tone) const {
    if (!has_colour_ || tone == Tone::kPlain) return text;
    const char* code = tone == Tone::kWorse ? "31" : (tone == Tone::kBetter ? "32" : "2");
    return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
  }

  bool has_colour_;
  std::string out_;
};

void add_list(Terminal& out, const char* title, const std::vector<std::string>& items) {
  if (items.empty()) return;
  out.heading(title);
  for (const std::string& item : items) out.folded("  - ", item);
}

void add_table(Terminal& out, const WorkloadView& view) {
  LineView head{"",   view.engine_a, view.engine_b, "gap", "95% interval", view.share_title,
                "by", "real",        Tone::kPlain,  {}};
  out.table_line(head);
  for (const LineView& line : view.totals_lines) out.table_line(line);
  out.line("  " + std::string(kWidth - 4, '-'), Tone::kQuiet);
  for (const LineView& line : view.rows) out.table_line(line);
  if (!view.rows.empty()) out.line("  " + std::string(kWidth - 4, '-'), Tone::kQuiet);
  for (const LineView& line : view.lines) out.table_line(line);
}

void add_checks(Terminal& out, const WorkloadView& view) {
  if (!view.checks.empty()) out.heading("checks");
  for (const CheckView& check : view.checks) {
    const Tone tone = check.status == core::CheckStatus::kFailed
                          ? Tone::kWorse
                          : (check.status == core::CheckStatus::kNotRun ? Tone::kQuiet : Tone::kPlain);
    const std::string start =
        fmt::format("  {:<7} {:<13} ", core::check_status_name(check.status), check.name);
    out.folded(start, check.engine.empty() ? check.text : check.engine + ": " + check.text, tone);
  }
}

void add_notes(Terminal& out, const WorkloadView& view) {
  std::vector<std::string> notes;
  for (const auto* lines : {&view.rows, &view.lines}) {
    for (const LineView& line : *lines) {
      for (const std::string& note : line.notes) notes.push_back(line.name + ": " + note);
    }
  }
  add_list(out, "notes", notes);
}

}  // namespace

std::string render_terminal(const ReportView& view, bool has_colour) {
  Terminal out(has_colour);
  out.heading(view.title);
  if (!view.machine.empty()) out.folded("", view.machine);
  add_list(out, "what differs between the two sides", view.differs);
  for (const WorkloadView& workload : view.workloads) {
    out.blank();
    out.heading(workload.title);
    for (const std::string& line : workload.totals) out.folded("  ", line);
    out.blank();
    add_table(out, workload);
    out.blank();
    add_list(out, "what the graphs execute differently", workload.graph_changes);
    add_checks(out, workload);
    add_notes(out, workload);
    add_list(out, "next", workload.next);
    add_list(out, "leave alone", workload.leave);
    add_list(out, "not solid", workload.caveats);
  }
  out.blank();
  for (const WorkloadView& workload : view.workloads) out.folded("", workload.headline);
  if (view.workloads.empty()) out.line("The record holds no workload: the session ended before it measured.");
  return out.text();
}

}  // namespace opledger::report
