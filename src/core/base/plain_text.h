// Text that others wrote, made safe to print: an engine's name may hold a line break or a terminal's
// commands.
#pragma once

#include <string>
#include <string_view>

namespace opledger {

/// `text` with a `?` for every control character (below 0x20, 0x7f, and U+0080 to U+009F in UTF-8).
std::string plain_text(std::string_view text);

}  // namespace opledger
