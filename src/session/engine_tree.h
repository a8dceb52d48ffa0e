// Knows what a llama.cpp-family source tree and its built libraries look like: where headers and libraries
// are, which family it is, and whether the two are of the same version. Builds and changes nothing but a
// small probe program in a folder it is given.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace opledger::session {

/// Says what is missing when `tree` is not the top of a llama.cpp-family source tree.
Status check_tree(const std::filesystem::path& tree);

/// "ik_llama.cpp" when the tree's ggml has that fork's own operations, else "llama.cpp".
Result<std::string> family_of_tree(const std::filesystem::path& tree);

/// The libraries that an adapter links: libllama first, then every ggml library it loads.
struct EngineLibraries {
  std::vector<std::filesystem::path> libraries;
  std::vector<std::filesystem::path> folders;  ///< all that the loader must search, bundled runtimes included
};

/// Finds libllama in `folder` (or its bin, lib, lib64, src) and asks the loader what it needs; libraries
/// that wheels bundle in a sibling folder `*.libs` are found too. An Error names what is missing.
/// `scratch` (created) keeps what the loader said.
Result<EngineLibraries> find_libraries(const std::filesystem::path& folder,
                                       const std::filesystem::path& scratch);

/// Compiles a small program against the tree's headers, runs it against the libraries, and compares what
/// both say: operations by name, the size of a tensor, the version. Also compares headers that lie beside
/// the libraries (as wheels and installs ship them) with the tree's. `scratch` holds the program; it is
/// created. An Error says what differs.
Status check_same_version(const std::filesystem::path& tree, const EngineLibraries& libraries,
                          const std::filesystem::path& scratch);

/// Names of `enum ggml_op` in a ggml.h, in order, without the prefix. Empty when it has no such enum.
std::vector<std::string> op_names_of_header(const std::string& ggml_h);

}  // namespace opledger::session
