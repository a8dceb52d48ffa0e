// Numbers as people read them: four digits or so, a sign where it is a difference, "-" for what is unknown.
// Of the report, and of whoever prints a figure beside it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "core/ledger/ledger.h"

namespace opledger::report {

/// Milliseconds with as many decimals as leave about four digits: 1224, 309.1, 12.35, 0.412.
std::string ms_text(double ms);
/// The same, with its sign.
std::string signed_ms_text(double ms);
/// "-2.5 ± 1.9", "-2.5" without an interval, "-" where unknown.
std::string difference_text(const core::Measured& difference);
/// The same of something that cannot be negative: "309.1 ± 1.9", "309.1" without an interval, "< 1.2" where
/// the interval reaches 0, "-" where unknown.
std::string cost_text(const core::Measured& cost);
/// "+990.0"; "< 16.9" below the noise floor; "-" where unknown.
std::string gap_text(const core::Measured& gap, std::optional<double> floor_ms);
/// "[+977.7, +1002]", "-" where unknown.
std::string interval_text(const std::optional<std::array<double, 2>>& ci_ms);
/// "96%", "-" where unknown.
std::string share_text(const std::optional<double>& share_ratio);
/// With three digits: "4.35%", "0.5%", "-12.3%".
std::string percent_text(double ratio);
/// "374.8", "-" where unknown.
std::string rate_text(const std::optional<double>& tokens_per_s);

/// Columns that UTF-8 text takes on a terminal, for the characters used here (one column each).
size_t columns_of(std::string_view text);

}  // namespace opledger::report
