// UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing above U+10FFFF.
#include "gguf/text.h"

#include <algorithm>

namespace opledger::gguf::detail {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kCut = "...";
constexpr size_t kMessageBytes = 80;

bool is_control(unsigned char c) {
  return c < 0x20 || c == 0x7F;
}

/// Length of the well-formed sequence at `at`, or 0.
size_t sequence_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  size_t length = 0;
  if (lead >= 0xC2 && lead <= 0xDF) length = 2;
  if (lead >= 0xE0 && lead <= 0xEF) length = 3;
  if (lead >= 0xF0 && lead <= 0xF4) length = 4;
  if (length == 0 || at + length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  const bool is_overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool is_surrogate = lead == 0xED && second > 0x9F;
  const bool is_too_large = lead == 0xF4 && second > 0x8F;
  return is_overlong || is_surrogate || is_too_large ? 0 : length;
}

}  // namespace

bool is_plain_name(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = sequence_length(text, at);
    if (length == 0 || (length == 1 && is_control(static_cast<unsigned char>(text[at])))) return false;
    at += length;
  }
  return true;
}

std::string well_formed(std::string_view text, size_t max_bytes) {
  std::string out;
  size_t cut = 0;  // the last boundary that leaves room for the mark
  for (size_t at = 0; at < text.size();) {
    const size_t length = sequence_length(text, at);
    out.append(length == 0 ? kReplacement : text.substr(at, length));
    at += std::max<size_t>(length, 1);
    if (out.size() + kCut.size() <= max_bytes) cut = out.size();
    if (out.size() > max_bytes) return out.substr(0, cut).append(kCut);
  }
  return out;
}

std::string printable(std::string_view text) {
  std::string out = well_formed(text, kMessageBytes);
  std::replace_if(
      out.begin(), out.end(), [](unsigned char c) { return is_control(c); }, '?');
  return out;
}

}  // namespace opledger::gguf::detail
