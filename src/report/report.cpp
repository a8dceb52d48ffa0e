#include "report/report.h"

#include <fmt/format.h>

#include "report/renderers.h"

namespace opledger::report {

Result<Format> format_named(std::string_view name) {
  if (name == "terminal") return Format::kTerminal;
  if (name == "markdown") return Format::kMarkdown;
  if (name == "json") return Format::kJson;
  return Error::bad_input(fmt::format("--format {}: give terminal, markdown or json", name));
}

bool wants_colour(bool is_terminal, const char* no_color) {
  return is_terminal && (no_color == nullptr || *no_color == '\0');
}

std::string render(const core::Ledger& ledger, Format format, const RenderOptions& options) {
  if (format == Format::kJson) return render_json(ledger);
  const ReportView view = view_of(ledger);
  return format == Format::kMarkdown ? render_markdown(view) : render_terminal(view, options.has_colour);
}

std::string render(const core::Regression& regression, Format format, const RenderOptions& options) {
  if (format == Format::kJson) return render_json(regression);
  const ReportView view = view_of(regression);
  return format == Format::kMarkdown ? render_markdown(view) : render_terminal(view, options.has_colour);
}

}  // namespace opledger::report
