// Do two engines give the same answer? Compares logits on the same tokens: being faster by computing
// something else must be seen. Pure, but for the text form that the protocol gives logits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace opledger::session {

/// Bytes of standard base64 with padding. Bad input names what is wrong.
Result<std::string> decode_base64(std::string_view text);

/// One row of logits from little-endian f32 in base64; a failure unless it holds `vocab_tokens` values.
Result<std::vector<float>> decode_logits(std::string_view base64, int64_t vocab_tokens);

struct AnswerAgreement {
  double top1_agreement_ratio = 0;
  double kl_nats_mean = 0;  ///< Kullback-Leibler divergence of b from a: sum of a ln(a/b), mean over rows
};

/// Empty when there are no rows, their counts or lengths differ, or a logit is not finite.
std::optional<AnswerAgreement> compare_answers(const std::vector<std::vector<float>>& a,
                                               const std::vector<std::vector<float>>& b);

}  // namespace opledger::session
