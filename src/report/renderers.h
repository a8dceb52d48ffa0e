// One function per format. Internal to the report.
#pragma once

#include <string>

#include "core/ledger/ledger.h"
#include "report/view.h"

namespace opledger::report {

std::string render_terminal(const ReportView& view, bool has_colour);
std::string render_markdown(const ReportView& view);
std::string render_json(const core::Ledger& ledger);
std::string render_json(const core::Regression& regression);

}  // namespace opledger::report
