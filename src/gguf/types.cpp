// The table of types. Ids and sizes were printed by both engines' own libraries; where one id means different
// things (15 is a scratch format that no file holds), llama.cpp's meaning stands.
#include "gguf/types.h"

#include <algorithm>
#include <cctype>
#include <limits>

namespace opledger::gguf {
namespace {

constexpr auto kTypes = std::to_array<TensorType>({
    {0, "f32", 1, 4, 0},
    {1, "f16", 1, 2, 0},
    {2, "q4_0", 32, 18, 0},
    {3, "q4_1", 32, 20, 0},
    {6, "q5_0", 32, 22, 0},
    {7, "q5_1", 32, 24, 0},
    {8, "q8_0", 32, 34, 0},
    {9, "q8_1", 32, 36, 0},
    {10, "q2_K", 256, 84, 0},
    {11, "q3_K", 256, 110, 0},
    {12, "q4_K", 256, 144, 0},
    {13, "q5_K", 256, 176, 0},
    {14, "q6_K", 256, 210, 0},
    {15, "q8_K", 256, 292, 0},
    {16, "iq2_xxs", 256, 66, 0},
    {17, "iq2_xs", 256, 74, 0},
    {18, "iq3_xxs", 256, 98, 0},
    {19, "iq1_s", 256, 50, 0},
    {20, "iq4_nl", 32, 18, 0},
    {21, "iq3_s", 256, 110, 0},
    {22, "iq2_s", 256, 82, 0},
    {23, "iq4_xs", 256, 136, 0},
    {24, "i8", 1, 1, 0},
    {25, "i16", 1, 2, 0},
    {26, "i32", 1, 4, 0},
    {27, "i64", 1, 8, 0},
    {28, "f64", 1, 8, 0},
    {29, "iq1_m", 256, 56, 0},
    {30, "bf16", 1, 2, 0},
    {31, "q4_0_4x4", 32, 18, 0},
    {32, "q4_0_4x8", 32, 18, 0},
    {33, "q4_0_8x8", 32, 18, 0},
    {34, "tq1_0", 256, 54, 0},
    {35, "tq2_0", 256, 66, 0},
    {36, "i2_s", 1, 1, 0},
    {39, "mxfp4", 32, 17, 0},
    {40, "nvfp4", 64, 36, 0},
    {41, "q1_0", 128, 18, 0},
    {42, "q2_0", 64, 18, 0},
    {97, "q8_0_x4", 32, 34, 0},
    {98, "q8_1_x4", 32, 36, 0},
    {99, "q8_2_x4", 32, 36, 0},
    {133, "q6_0", 32, 26, 0},
    {134, "iq1_bn", 64, 13, 2},
    {135, "iq2_bn", 64, 16, 4},
    {136, "q8_K64", 64, 68, 0},
    {137, "iq2_k", 256, 76, 0},
    {138, "iq3_k", 256, 110, 0},
    {139, "iq4_k", 256, 144, 0},
    {140, "iq5_k", 256, 176, 0},
    {141, "iq6_k", 256, 212, 0},
    {144, "iq4_ks", 256, 136, 4},
    {145, "iq2_ks", 256, 70, 2},
    {146, "iq4_kss", 256, 128, 4},
    {147, "q8_K16", 64, 64, 20},
    {148, "q8_K32", 256, 296, 0},
    {149, "q8_KR8", 256, 296, 0},
    {150, "q8_K128", 128, 140, 0},
    {151, "q8_KV", 32, 32, 8},
    {152, "iq5_ks", 256, 168, 4},
    {153, "iq2_kt", 256, 68, 4},
    {154, "iq3_kt", 256, 100, 4},
    {155, "iq4_kt", 256, 128, 4},
    {156, "iq3_ks", 256, 102, 2},
    {157, "iq2_kl", 256, 86, 2},
    {158, "iq1_kt", 256, 56, 4},
    {202, "q4_0_r8", 32, 18, 0},
    {206, "q5_0_r4", 32, 22, 0},
    {208, "q8_0_r8", 32, 34, 0},
    {210, "q2_k_r4", 256, 84, 0},
    {211, "q3_k_r4", 256, 110, 0},
    {212, "q4_k_r4", 256, 144, 0},
    {213, "q5_k_r4", 256, 176, 0},
    {214, "q6_k_r4", 256, 210, 0},
    {216, "iq2_xxs_r4", 256, 66, 0},
    {217, "iq2_xs_r4", 256, 74, 0},
    {218, "iq3_xxs_r4", 256, 98, 0},
    {219, "iq1_s_r4", 32, 6, 2},
    {220, "iq4_nl_r4", 32, 18, 0},
    {221, "iq3_s_r4", 256, 110, 0},
    {222, "iq2_s_r4", 256, 82, 0},
    {223, "iq4_xs_r8", 256, 136, 0},
    {229, "iq1_m_r4", 32, 7, 2},
    {230, "bf16_r16", 1, 2, 0},
    {233, "q6_0_r4", 32, 26, 0},
    {335, "iq2_bn_r4", 64, 16, 4},
    {337, "iq2_k_r4", 256, 76, 0},
    {338, "iq3_k_r4", 256, 110, 0},
    {339, "iq4_k_r4", 256, 144, 0},
    {340, "iq5_k_r4", 256, 176, 0},
    {344, "iq4_ks_r4", 256, 136, 4},
    {352, "iq5_ks_r4", 256, 168, 4},
    {397, "q8_k_r16", 256, 258, 0},
    {398, "q8_KV_r8", 32, 32, 4},
    {399, "q8_k_r8", 256, 258, 0},
});

// BitNet's ternary type packs four weights into a byte and keeps one scale block for the whole tensor.
constexpr uint32_t kI2sId = 36;
constexpr uint64_t kI2sTailBytes = 32;

constexpr uint64_t kMaxBytes = std::numeric_limits<int64_t>::max();

std::optional<uint64_t> multiplied(uint64_t a, uint64_t b) {
  if (b != 0 && a > kMaxBytes / b) return std::nullopt;
  return a * b;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

const TensorType* find_type(uint32_t id) {
  const auto* const found = std::lower_bound(kTypes.begin(), kTypes.end(), id,
                                             [](const TensorType& t, uint32_t i) { return t.id < i; });
  return found != kTypes.end() && found->id == id ? found : nullptr;
}

const TensorType* find_type(std::string_view name) {
  const auto* const found = std::find_if(kTypes.begin(), kTypes.end(), [name](const TensorType& t) {
    return equal_ignoring_case(t.name, name);
  });
  return found != kTypes.end() ? found : nullptr;
}

std::optional<uint64_t> tensor_bytes(const TensorType& type, const std::array<int64_t, 4>& ne) {
  if (std::any_of(ne.begin(), ne.end(), [](int64_t n) { return n <= 0; })) return std::nullopt;
  if (ne[0] % type.block_weights != 0) return std::nullopt;
  const auto blocks = static_cast<uint64_t>(ne[0]) / type.block_weights;
  std::optional<uint64_t> bytes = multiplied(blocks, type.block_bytes);
  if (!bytes) return std::nullopt;
  *bytes += type.row_extra_bytes;  // cannot wrap; too much is refused below
  for (size_t d = 1; d < ne.size() && bytes; ++d) bytes = multiplied(*bytes, static_cast<uint64_t>(ne[d]));
  if (bytes && type.id == kI2sId) *bytes = *bytes / 4 + kI2sTailBytes;
  return bytes;
}

}  // namespace opledger::gguf
