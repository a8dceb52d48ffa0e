// Reads and writes `engine.json` files and compares libraries with what they were. Trusts no field of a
// file: someone may have edited it.
#include "session/registry.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include <xxhash.h>

namespace opledger::session {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json to_json(const EngineEntry& entry) {
  json libraries = json::array();
  for (const EngineLibrary& library : entry.libraries) {
    libraries.push_back({{"path", library.path.string()}, {"bytes", library.bytes}, {"xxh3", library.xxh3}});
  }
  json paths = json::array();
  for (const fs::path& path : entry.library_path) paths.push_back(path.string());
  return {{"name", entry.name},     {"kind", entry.kind},    {"adapter", entry.adapter.string()},
          {"family", entry.family}, {"library_path", paths}, {"libraries", libraries},
          {"source", entry.source}, {"build", entry.build}};
}

// Throws json::exception on a missing or mistyped key; the one caller turns it into an Error.
EngineEntry from_json(const json& object) {
  EngineEntry entry;
  entry.name = object.at("name").get<std::string>();
  entry.kind = object.at("kind").get<std::string>();
  entry.adapter = object.at("adapter").get<std::string>();
  entry.family = object.at("family").get<std::string>();
  for (const json& path : object.at("library_path")) entry.library_path.emplace_back(path.get<std::string>());
  for (const json& library : object.at("libraries")) {
    entry.libraries.push_back({library.at("path").get<std::string>(),
                               library.at("bytes").get<std::uint64_t>(),
                               library.at("xxh3").get<std::string>()});
  }
  entry.source = object.at("source").get<std::string>();
  entry.build = object.at("build").get<std::map<std::string, std::string>>();
  return entry;
}

Status write_whole(const fs::path& path, const std::string& text) {
  const fs::path fresh = path.string() + ".new";
  {
    std::ofstream out(fresh, std::ios::binary | std::ios::trunc);
    out << text;
    out.close();
    if (!out) {
      std::error_code ignored;
      fs::remove(fresh, ignored);
      return Error::environment(fmt::format(
          "cannot write {}: free some room or set OPLEDGER_CACHE to a folder you may write", fresh.string()));
    }
  }
  std::error_code failed;
  fs::rename(fresh, path, failed);
  if (failed) return Error::environment(fmt::format("cannot write {}: {}", path.string(), failed.message()));
  return {};
}

}  // namespace

Result<fs::path> cache_folder() {
  if (const char* cache = std::getenv("OPLEDGER_CACHE"); cache != nullptr && *cache != '\0') {
    std::error_code failed;
    fs::path absolute = fs::absolute(cache, failed);
    if (failed) return Error::environment(fmt::format("OPLEDGER_CACHE={}: {}", cache, failed.message()));
    return absolute;
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    return fs::path(home) / ".cache" / "opledger";
  }
  return Error::environment(
      "neither OPLEDGER_CACHE nor HOME is set: set OPLEDGER_CACHE to a folder for engines");
}

bool is_engine_name(std::string_view name) {
  constexpr std::size_t kLongest = 64;
  if (name.empty() || name.size() > kLongest || name.front() == '.' || name.front() == '-') return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
  });
}

Result<std::string> xxh3_of_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error::bad_input(fmt::format("cannot read {}", path.string()));
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  XXH3_64bits_reset(state.get());
  std::vector<char> buffer(std::size_t{1} << 20U);
  while (in) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    XXH3_64bits_update(state.get(), buffer.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad()) return Error::environment(fmt::format("reading {} failed", path.string()));
  return fmt::format("{:016x}", XXH3_64bits_digest(state.get()));
}

Result<EngineLibrary> library_facts(const fs::path& path) {
  std::error_code failed;
  const std::uintmax_t bytes = fs::file_size(path, failed);
  if (failed) return Error::bad_input(fmt::format("cannot read {}: {}", path.string(), failed.message()));
  Result<std::string> hash = xxh3_of_file(path);
  if (!hash) return hash.error();
  return EngineLibrary{path, bytes, *hash};
}

Status check_fresh(const EngineEntry& entry) {
  const std::string again =
      fmt::format("run `opledger engine add {}` again (source: {})", entry.name, entry.source);
  std::error_code ignored;
  if (!fs::is_regular_file(entry.adapter, ignored)) {
    return Error::bad_input(
        fmt::format("engine {}: its adapter {} is gone: {}", entry.name, entry.adapter.string(), again));
  }
  for (const EngineLibrary& library : entry.libraries) {
    const Result<EngineLibrary> now = library_facts(library.path);
    if (!now)
      return Error::bad_input(
          fmt::format("engine {} is stale: {}: {}", entry.name, now.error().message, again));
    if (now->bytes != library.bytes || now->xxh3 != library.xxh3) {
      return Error::bad_input(fmt::format("engine {} is stale: {} changed since it was added: {}", entry.name,
                                          library.path.string(), again));
    }
  }
  return {};
}

Registry::Registry(fs::path cache) : cache_(std::move(cache)) {}

fs::path Registry::folder_of(std::string_view name) const {
  return cache_ / "engines" / name;
}

Result<EngineEntry> Registry::read(std::string_view name) const {
  const fs::path path = folder_of(name) / "engine.json";
  const auto broken = [&path, name](std::string_view why) {
    return Error::bad_input(
        fmt::format("{}: {}: run `opledger engine remove {}` and add it again", path.string(), why, name));
  };
  std::ifstream in(path, std::ios::binary);
  const json object = json::parse(in, nullptr, false);
  if (object.is_discarded()) return broken("not JSON");
  try {
    EngineEntry entry = from_json(object);
    if (entry.name != name) return broken(fmt::format("key name says {}", entry.name));
    return entry;
  } catch (const json::exception& wrong) {
    return broken(wrong.what());
  }
}

Result<std::vector<EngineEntry>> Registry::list() const {
  std::vector<EngineEntry> entries;
  std::error_code failed;
  std::vector<std::string> names;
  for (const fs::directory_entry& folder : fs::directory_iterator(cache_ / "engines", failed)) {
    std::error_code ignored;
    if (fs::exists(folder.path() / "engine.json", ignored))
      names.push_back(folder.path().filename().string());
  }
  // A cache without the folder holds no engines: that is an answer, not a failure.
  if (failed && failed != std::errc::no_such_file_or_directory) {
    return Error::environment(
        fmt::format("cannot list {}: {}", (cache_ / "engines").string(), failed.message()));
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    Result<EngineEntry> entry = read(name);
    if (!entry) return entry.error();
    entries.push_back(std::move(entry).value());
  }
  return entries;
}

Result<EngineEntry> Registry::find(std::string_view name) const {
  std::error_code ignored;
  if (is_engine_name(name) && fs::exists(folder_of(name) / "engine.json", ignored)) return read(name);
  const Result<std::vector<EngineEntry>> known = list();
  std::vector<std::string> names;
  if (known) {
    for (const EngineEntry& entry : *known) names.push_back(entry.name);
  }
  const std::string next = names.empty() ? "none is: add one with `opledger engine add NAME --from DIR`"
                                         : fmt::format("these are: {}", fmt::join(names, ", "));
  return Error::bad_input(fmt::format("engine {} is not known in {}; {}", name, cache_.string(), next));
}

Status Registry::save(const EngineEntry& entry) const {
  std::error_code failed;
  fs::create_directories(folder_of(entry.name), failed);
  if (failed) {
    return Error::environment(
        fmt::format("cannot create {}: {}: set OPLEDGER_CACHE to a folder you may write",
                    folder_of(entry.name).string(), failed.message()));
  }
  return write_whole(folder_of(entry.name) / "engine.json", to_json(entry).dump(2) + "\n");
}

void Registry::forget(std::string_view name) const {
  std::error_code ignored;
  fs::remove(folder_of(name) / "engine.json", ignored);
}

Status Registry::remove(std::string_view name) const {
  if (!is_engine_name(name)) return Error::bad_input(fmt::format("{} is no engine name", name));
  std::error_code failed;
  if (!fs::exists(folder_of(name), failed)) {
    const Result<EngineEntry> unknown = find(name);
    return unknown ? Status() : Status(unknown.error());
  }
  fs::remove_all(folder_of(name), failed);
  if (failed)
    return Error::environment(
        fmt::format("cannot remove {}: {}", folder_of(name).string(), failed.message()));
  return {};
}

}  // namespace opledger::session
