// What a record keeps of a model file: the scalars of its metadata and its tensors, in JSON's terms.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "gguf/reader.h"

namespace opledger::gguf {

/// A number or a text: everything else has been turned into one of them.
using Fact = std::variant<int64_t, uint64_t, double, std::string>;

/// The record's `model` entry, less its side. Every text is well-formed UTF-8 and every number finite, so
/// that any JSON writer takes them.
struct ModelFacts {
  std::string path;
  uint64_t bytes = 0;
  std::string architecture;  ///< empty when the file does not say
  /// Truths become "true" and "false", numbers that are not finite "nan" or "inf"; texts over 1024 bytes
  /// (chat templates) end in "...". Signed numbers are int64, unsigned ones uint64.
  std::map<std::string, Fact, std::less<>> metadata;
  std::vector<TensorInfo> tensors;
};

ModelFacts model_facts(const GgufFile& file);

}  // namespace opledger::gguf
