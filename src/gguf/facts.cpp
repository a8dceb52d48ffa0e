// JSON has no NaN and no broken UTF-8; a model file may hold both. This is where they end.
#include "gguf/facts.h"

#include <cmath>
#include <type_traits>

#include "gguf/text.h"

namespace opledger::gguf {
namespace {

constexpr size_t kMaxFactBytes = 1024;

Fact fact_of(const Scalar& value) {
  return std::visit(
      [](const auto& v) -> Fact {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, bool>) {
          return std::string(v ? "true" : "false");
        } else if constexpr (std::is_same_v<T, std::string>) {
          return detail::well_formed(v, kMaxFactBytes);
        } else if constexpr (std::is_same_v<T, double>) {
          if (std::isfinite(v)) return v;
          if (std::isnan(v)) return std::string("nan");
          return std::string(v > 0 ? "inf" : "-inf");
        } else {
          return v;
        }
      },
      value);
}

}  // namespace

ModelFacts model_facts(const GgufFile& file) {
  ModelFacts facts;
  facts.path = file.path.string();
  facts.bytes = file.file_bytes;
  facts.architecture = detail::well_formed(file.text("general.architecture").value_or(""), kMaxFactBytes);
  for (const auto& [key, value] : file.metadata) facts.metadata.emplace(key, fact_of(value));
  facts.tensors = file.tensors;
  return facts;
}

}  // namespace opledger::gguf
