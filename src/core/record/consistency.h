// Whether the lines of a record fit together: two lines that answer one question differently, or blocks that
// cannot have been measured in the order given. Judges lines that were read; refuses to mend any.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/record/record.h"

namespace opledger::core {

/// `record` as it stands after a line of `type` was read into it. What of that line contradicts the lines
/// before it, in words that begin with a key or a type; empty when it fits.
std::optional<std::string> misfit_of_last(std::string_view type, const Record& record);

}  // namespace opledger::core
