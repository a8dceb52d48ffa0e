#include "core/base/plain_text.h"

namespace opledger {

std::string plain_text(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    // U+009B alone begins a command on terminals that know eight-bit controls.
    const bool is_wide_control = byte == 0xc2 && next >= 0x80 && next <= 0x9f;
    const bool is_control = byte < 0x20 || byte == 0x7f || is_wide_control;
    plain += is_control ? '?' : text[i];
    if (is_wide_control) ++i;
  }
  return plain;
}

}  // namespace opledger
