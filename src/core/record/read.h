// Reads a record's JSON Lines. Refuses a line that is not what docs/record.md says, naming file, line and
// key; ignores unknown line types and unknown fields, and a last line that a killed session left unfinished.
#pragma once

#include <string_view>

#include "core/base/result.h"
#include "core/record/record.h"

namespace opledger::core {

/// Parses the whole text of a record. `file_name` is for messages only. A cut last line is left out and named
/// in `Record::doubts`. A text without a header line is bad input.
Result<Record> parse_record(std::string_view text, std::string_view file_name);

}  // namespace opledger::core
