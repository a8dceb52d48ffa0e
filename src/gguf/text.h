// Text out of files that nobody vouches for: is it UTF-8, and how to show it on one line. Private to
// src/gguf.
#pragma once

#include <string>
#include <string_view>

namespace opledger::gguf::detail {

/// True for well-formed UTF-8 without control characters: what a key or a tensor name may hold.
bool is_plain_name(std::string_view text);

/// The same text as well-formed UTF-8, broken bytes replaced by U+FFFD, at most `max_bytes` long; what is
/// cut off is marked by "...".
std::string well_formed(std::string_view text, size_t max_bytes);

/// For error messages: well-formed, control characters shown as '?', at most 80 bytes.
std::string printable(std::string_view text);

}  // namespace opledger::gguf::detail
