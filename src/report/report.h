// Prints a ledger: for a terminal, as Markdown, as the published JSON. Renders what the ledger holds and
// refuses to compute anything new, to hide a failed check, or to print an unknown figure as 0.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/ledger/ledger.h"
#include "core/regress/regression.h"

namespace opledger::report {

enum class Format { kTerminal, kMarkdown, kJson };

/// terminal, markdown or json. Bad input for anything else, naming the flag and what is accepted.
Result<Format> format_named(std::string_view name);

struct RenderOptions {
  bool has_colour = false;  ///< of the terminal format only: see wants_colour
};

/// Colour on a terminal, unless NO_COLOR is set to anything but the empty text.
bool wants_colour(bool is_terminal, const char* no_color);

/// Ends with a newline. The terminal format keeps within 100 columns.
std::string render(const core::Ledger& ledger, Format format, const RenderOptions& options);
/// The verdict on a head, the rows that moved, what the graphs execute differently, and the checks that did
/// not hold.
std::string render(const core::Regression& regression, Format format, const RenderOptions& options);

/// Where the gap lives, one sentence for each workload, a line each: "llama is 2.9x slower than ik at pp512
/// (+1224 ms): dense_proj holds 96% of the gap." Or why nothing can be told. Without a final newline.
std::string headline(const core::Ledger& ledger);
std::string headline(const core::WorkloadLedger& workload);
/// "regressed at pp512: head takes 4.3% more time than base (+15.20 ms, time ratio ...). Moved: attention
/// +12.10 ms." Or within what they are the same, or why nothing can be told.
std::string headline(const core::WorkloadLedger& workload, const core::WorkloadRegression& regression,
                     double min_effect_ratio);

}  // namespace opledger::report
