// Models with the shapes of real ones and random weights, which both llama.cpp and ik_llama.cpp load: to
// measure engines where the real model is too large, or its experts' popularity should be chosen. They say
// nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "gguf/routing.h"
#include "gguf/writer.h"

namespace opledger::gguf {

enum class Architecture { kQwen3Moe, kQwen35Moe, kLlama };

/// Reads "qwen3moe", "qwen35moe" or "llama"; bad_input names what is accepted.
Result<Architecture> parse_architecture(std::string_view text);
std::string_view architecture_name(Architecture architecture);

/// What to write. The widths follow from the architecture: docs/skeleton.md lists them.
struct SkeletonSpec {
  Architecture architecture = Architecture::kQwen3Moe;
  int layers = 4;
  std::optional<int> experts;  ///< empty: 64, or none for llama
  std::string type = "q4_K";   ///< of the large matrices: q4_0, q4_K, q6_K, q8_0, f16 or f32, in any case
  RoutingSpec routing;
  std::optional<int> vocab_tokens;  ///< empty: 49152 for llama, else 32000
  uint64_t seed = 1;
};

/// How one tensor's weights are drawn. kCentred is kGaussian with every row's mean taken away.
struct Fill {
  enum class Kind { kOnes, kGaussian, kCentred, kUniform, kEmbedding, kRouter };
  Kind kind = Kind::kOnes;
  float scale = 0;            ///< standard deviation
  float low = 0, high = 0;    ///< kUniform
  float mean = 0;             ///< of every embedding, in units of `scale`; 0 when nothing rides on it
  std::vector<float> biases;  ///< kRouter: added to each expert's score, in units of the score's deviation
};

/// Everything that decides the file.
struct SkeletonPlan {
  Layout layout;
  std::vector<Fill> fills;  ///< one per tensor of the layout
  uint64_t seed = 1;
};

/// bad_input names the flag that asks for something impossible.
Result<SkeletonPlan> plan_skeleton(const SkeletonSpec& spec);

/// Streams the file to `path`, under another name until it is whole. The same plan gives the same bytes.
Status write_skeleton(const SkeletonPlan& plan, const std::filesystem::path& path);
Status write_skeleton(const SkeletonSpec& spec, const std::filesystem::path& path);

}  // namespace opledger::gguf
