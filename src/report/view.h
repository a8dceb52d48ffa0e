// What the terminal and Markdown show, as text in its order: built once from the ledger, so that both say the
// same. Internal to the report.
#pragma once

#include <string>
#include <vector>

#include "core/ledger/ledger.h"
#include "core/regress/regression.h"

namespace opledger::report {

enum class Tone { kPlain, kWorse, kBetter, kQuiet };

/// One line of the table.
struct LineView {
  std::string name, a, b, gap, interval, share, evidence, real;
  Tone tone = Tone::kPlain;
  std::vector<std::string> notes;
};

struct CheckView {
  std::string name;
  std::string engine;  ///< the engine's name, empty for both
  core::CheckStatus status = core::CheckStatus::kNotRun;
  std::string text;
};

struct WorkloadView {
  std::string title;  ///< "pp512: ms per pass of 512 tokens"
  std::string headline;
  std::vector<std::string> totals;
  std::string engine_a, engine_b;
  std::string share_title;             ///< what the column `share` is a share of
  std::vector<LineView> totals_lines;  ///< wall, graph
  std::vector<LineView> rows;
  std::vector<LineView> lines;             ///< wall - graph, unexplained, of which barriers
  std::vector<std::string> graph_changes;  ///< of a regression test
  std::vector<CheckView> checks;
  std::vector<std::string> next, leave, caveats;
};

struct ReportView {
  std::string title;
  std::string machine;
  std::vector<std::string> differs;
  std::vector<WorkloadView> workloads;
};

/// No text of it holds a control character, whatever the record holds.
ReportView view_of(const core::Ledger& ledger);
/// Rows that did not move and checks that held are left out; the latter are counted.
ReportView view_of(const core::Regression& regression);

}  // namespace opledger::report
