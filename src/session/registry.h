// The engines that this machine knows: one folder each under the cache, written by `opledger engine add`
// and read by every command that runs an engine. It refuses to hand out an engine whose libraries changed
// since it was added: the adapter was compiled against the old ones.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace opledger::session {

/// A shared library as it was when its engine was added.
struct EngineLibrary {
  std::filesystem::path path;
  std::uint64_t bytes = 0;
  std::string xxh3;  ///< XXH3-64 of the whole file, 16 hex digits
};

/// What `engine.json` holds.
struct EngineEntry {
  std::string name;
  std::string kind;                                 ///< "ggml": which adapter was built
  std::filesystem::path adapter;                    ///< executable that speaks the engine protocol
  std::string family;                               ///< "llama.cpp", "ik_llama.cpp": names the rule file
  std::vector<std::filesystem::path> library_path;  ///< folders for LD_LIBRARY_PATH, in order
  std::vector<EngineLibrary> libraries;             ///< what the adapter links, to notice a change
  std::string source;                               ///< the tree or the library folder it was added from
  std::map<std::string, std::string> build;         ///< build options in force, where known
};

/// `$OPLEDGER_CACHE`, or `~/.cache/opledger`. An Error when neither variable that leads to it is set.
Result<std::filesystem::path> cache_folder();

/// Names are folder names and parts of engine specs: letters a-z, digits, `_`, `.` and `-`, not starting
/// with `.` or `-`.
bool is_engine_name(std::string_view name);

/// XXH3-64 of a whole file as 16 hex digits.
Result<std::string> xxh3_of_file(const std::filesystem::path& path);

/// Size and hash of a library now.
Result<EngineLibrary> library_facts(const std::filesystem::path& path);

/// Says which library or adapter is gone or changed since the engine was added, and how to add it again.
Status check_fresh(const EngineEntry& entry);

class Registry {
 public:
  explicit Registry(std::filesystem::path cache);

  /// Where an engine's files live, whether it exists or not.
  [[nodiscard]] std::filesystem::path folder_of(std::string_view name) const;
  /// Every engine whose file can be read, by name; unreadable ones are an Error that names the file.
  [[nodiscard]] Result<std::vector<EngineEntry>> list() const;
  /// The engine of that name. Unknown: an Error that lists the known ones. Freshness is not looked at.
  [[nodiscard]] Result<EngineEntry> find(std::string_view name) const;
  /// Writes `engine.json`, whole or not at all.
  [[nodiscard]] Status save(const EngineEntry& entry) const;
  /// Removes `engine.json` alone, so that a later `save` finds the builds again.
  void forget(std::string_view name) const;
  /// Removes the engine's folder with its builds. Sources and libraries elsewhere are left alone.
  [[nodiscard]] Status remove(std::string_view name) const;

 private:
  [[nodiscard]] Result<EngineEntry> read(std::string_view name) const;

  std::filesystem::path cache_;
};

}  // namespace opledger::session
