// Turns a source tree, or ready-made libraries and their headers, into a registered engine: builds the
// target `llama`, builds the adapter against exactly those headers and libraries, and checks that they fit.
// Sources are never written to.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "session/registry.h"

namespace opledger::session {

struct EngineSource {
  std::string name;
  std::filesystem::path tree;                      ///< headers: the top of a source tree
  std::optional<std::filesystem::path> libraries;  ///< folder with libllama; none: build the tree
  std::vector<std::string> cmake_options;          ///< "-DKEY=VALUE", only when the tree is built
};

/// Where the program tells what it does now; one line each, without an end of line.
using Say = std::function<void(const std::string&)>;

/// Builds and checks; registers nothing. `adapters` is the folder that holds ggml/CMakeLists.txt. A failed
/// build is a bad input: the first error of the log, and where the log is.
Result<EngineEntry> build_engine(const Registry& registry, const EngineSource& source,
                                 const std::filesystem::path& adapters, const Say& say);

/// Registers a built engine and starts it once: it must answer `initialize`, and name the family that its
/// tree is of. An engine that does not is not left registered.
Status register_engine(const Registry& registry, const EngineEntry& entry);

/// Splits `-DA=1 "-DB=x y"` as a shell would. An Error for words that are no -D option and for an open quote.
Result<std::vector<std::string>> split_cmake_options(const std::string& text);

}  // namespace opledger::session
