// Log-softmax in double: a vocabulary of 250,000 summed in float would lose the small divergences looked for.
#include "session/answers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

namespace opledger::session {
namespace {

int letter_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  if (c == '/') return 63;
  return -1;
}

/// ln of the sum of exponentials, shifted by the largest so that none overflows.
double log_sum_exp(const std::vector<float>& logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return largest + std::log(sum);
}

bool all_finite(const std::vector<float>& row) {
  return std::all_of(row.begin(), row.end(), [](float value) { return std::isfinite(value); });
}

double divergence(const std::vector<float>& a, const std::vector<float>& b) {
  const double norm_a = log_sum_exp(a);
  const double norm_b = log_sum_exp(b);
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double log_a = static_cast<double>(a[i]) - norm_a;
    const double log_b = static_cast<double>(b[i]) - norm_b;
    sum += std::exp(log_a) * (log_a - log_b);
  }
  return std::max(sum, 0.0);  // rounding may leave -1e-17 for equal rows
}

}  // namespace

Result<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0)
    return Error::bad_input(fmt::format("base64 text of {} characters is cut short", text.size()));
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    size_t padding = 0;
    uint32_t group = 0;
    for (size_t j = 0; j < 4; ++j) {
      const char c = text[i + j];
      const bool is_padding = c == '=' && i + 4 == text.size() && j >= 2;
      const int value = is_padding ? 0 : letter_value(c);
      if (value < 0 || (padding > 0 && !is_padding)) {
        return Error::bad_input(fmt::format("base64 text holds '{}' at {}", c, i + j));
      }
      padding += is_padding ? 1 : 0;
      group = (group << 6) | static_cast<uint32_t>(value);
    }
    for (size_t j = 0; j < 3 - padding; ++j) bytes += static_cast<char>((group >> (16 - 8 * j)) & 0xff);
  }
  return bytes;
}

Result<std::vector<float>> decode_logits(std::string_view base64, int64_t vocab_tokens) {
  const Result<std::string> bytes = decode_base64(base64);
  if (!bytes) return Error::failure("logits: " + bytes.error().message);
  if (bytes->size() != static_cast<size_t>(vocab_tokens) * sizeof(float)) {
    return Error::failure(fmt::format("logits: a row has {} bytes where {} tokens need {}", bytes->size(),
                                      vocab_tokens, static_cast<size_t>(vocab_tokens) * sizeof(float)));
  }
  std::vector<float> row(static_cast<size_t>(vocab_tokens));
  std::memcpy(row.data(), bytes->data(), bytes->size());
  return row;
}

std::optional<AnswerAgreement> compare_answers(const std::vector<std::vector<float>>& a,
                                               const std::vector<std::vector<float>>& b) {
  if (a.empty() || a.size() != b.size()) return std::nullopt;
  AnswerAgreement agreement;
  for (size_t row = 0; row < a.size(); ++row) {
    if (a[row].empty() || a[row].size() != b[row].size()) return std::nullopt;
    if (!all_finite(a[row]) || !all_finite(b[row])) return std::nullopt;
    const auto top_a = std::max_element(a[row].begin(), a[row].end()) - a[row].begin();
    const auto top_b = std::max_element(b[row].begin(), b[row].end()) - b[row].begin();
    agreement.top1_agreement_ratio += top_a == top_b ? 1 : 0;
    agreement.kl_nats_mean += divergence(a[row], b[row]);
  }
  agreement.top1_agreement_ratio /= static_cast<double>(a.size());
  agreement.kl_nats_mean /= static_cast<double>(a.size());
  return agreement;
}

}  // namespace opledger::session
