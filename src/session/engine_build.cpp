// Only the target `llama` is built: the rest of an engine's tree (tools, server, tests) takes most of its
// build time and is not needed to run a model.
#include "session/engine_build.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <system_error>

#include "platform/clock.h"
#include "session/build_command.h"
#include "session/engine.h"
#include "session/engine_spec.h"
#include "session/engine_tree.h"

namespace opledger::session {
namespace {

namespace fs = std::filesystem;

// Options a tree does not know are ignored by its CMake with a warning, so one list serves every version.
constexpr const char* kLeanOptions[] = {
    "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=ON",  "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF", "-DLLAMA_BUILD_TOOLS=OFF", "-DLLAMA_BUILD_SERVER=OFF",
    "-DLLAMA_BUILD_APP=OFF",      "-DLLAMA_BUILD_UI=OFF",    "-DLLAMA_CURL=OFF",
    "-DLLAMA_OPENSSL=OFF",        "-DGGML_CCACHE=OFF",
};

struct BuildFolder {
  fs::path source;
  fs::path folder;
  fs::path log;
  std::string target;
  std::vector<std::string> options;
};

Error build_failed(const BuildFolder& build, std::string_view step, int status) {
  const std::string text = read_log(build.log);
  const std::string why = first_build_error(text).value_or(fmt::format("exit status {}", status));
  return Error::bad_input(fmt::format("{} {} failed: {}; the whole log is {}", step, build.source.string(),
                                      why, build.log.string()));
}

Status run_step(const BuildFolder& build, std::string_view step, std::vector<std::string> argv,
                const Say& say) {
  BuildCommand command{std::move(argv), build.log, {}, {}};
  if (say) {
    command.on_line = [&say](const std::string& line) {
      if (line.rfind('[', 0) == 0) say(line.substr(0, line.find(']') + 1));
    };
  }
  const Result<int> status = run_build_command(command);
  if (!status) return status.error();
  if (*status != 0) return build_failed(build, step, *status);
  return {};
}

// A build folder keeps options of earlier runs: one that was configured otherwise is started afresh.
Status drop_unless_same(const fs::path& folder, const std::string& options) {
  std::error_code failed;
  if (read_log(folder / "opledger-options.txt") == options) return {};
  fs::remove_all(folder, failed);
  fs::create_directories(folder, failed);
  std::ofstream out(folder / "opledger-options.txt", std::ios::binary);
  out << options;
  out.close();
  if (!out)
    return Error::environment(
        fmt::format("cannot write in {}: set OPLEDGER_CACHE to a folder you may write", folder.string()));
  return {};
}

Status build_target(const BuildFolder& build, const Say& say) {
  std::string joined = build.source.string();
  for (const std::string& option : build.options) joined += '\n' + option;
  if (Status kept = drop_unless_same(build.folder, joined); !kept) return kept;
  std::error_code ignored;
  fs::remove(build.log, ignored);
  std::vector<std::string> configure = {"cmake", "-S",   build.source.string(), "-B", build.folder.string(),
                                        "-G",    "Ninja"};
  configure.insert(configure.end(), build.options.begin(), build.options.end());
  say(fmt::format("configuring {}", build.source.string()));
  if (Status configured = run_step(build, "configuring", std::move(configure), {}); !configured)
    return configured;
  say(fmt::format("building target {} (log: {})", build.target, build.log.string()));
  return run_step(build, "building", {"cmake", "--build", build.folder.string(), "--target", build.target},
                  say);
}

std::map<std::string, std::string> options_in_force(const fs::path& build_folder) {
  std::map<std::string, std::string> options;
  static const std::regex entry_form(
      R"(^(GGML_\w+|CMAKE_BUILD_TYPE|CMAKE_CXX_COMPILER|CMAKE_C_FLAGS|CMAKE_CXX_FLAGS):(\w+)=(.*)$)");
  std::istringstream in(read_log(build_folder / "CMakeCache.txt"));
  std::string line;
  while (std::getline(in, line)) {
    std::smatch match;
    if (!std::regex_match(line, match, entry_form) || match[2] == "INTERNAL" || match[3].str().empty())
      continue;
    // Folders and programs differ between machines and change nothing about the code.
    if (match[3].str().front() == '/' && match[1] != "CMAKE_CXX_COMPILER") continue;
    options[match[1].str()] = match[3].str();
  }
  return options;
}

Result<fs::path> find_adapter(const fs::path& folder) {
  for (const char* below : {"bin", ""}) {
    std::error_code ignored;
    fs::path candidate = folder / below / "opledger-ggml";
    if (fs::is_regular_file(candidate, ignored)) return candidate;
  }
  return Error::environment(fmt::format("the adapter's build left no opledger-ggml in {}", folder.string()));
}

Result<fs::path> build_adapter(const EngineSource& source, const EngineLibraries& libraries,
                               const fs::path& adapters, const fs::path& folder, const Say& say) {
  std::string list;
  for (const fs::path& library : libraries.libraries) list += (list.empty() ? "" : ";") + library.string();
  const BuildFolder build{
      adapters / "ggml",
      folder / "adapter",
      folder / "adapter.log",
      "opledger-ggml",
      {"-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
       "-DOPLEDGER_GGML_TREE=" + source.tree.string(), "-DOPLEDGER_GGML_LIBRARIES=" + list}};
  std::error_code ignored;
  if (!fs::exists(build.source / "CMakeLists.txt", ignored)) {
    return Error::environment(
        fmt::format("the adapter's sources are not in {}: run opledger from the tree it was built in",
                    build.source.string()));
  }
  if (Status built = build_target(build, say); !built) return built.error();
  return find_adapter(build.folder);
}

Result<fs::path> library_folder_of(const EngineSource& source, const fs::path& folder, const Say& say) {
  if (source.libraries) return *source.libraries;
  BuildFolder build{source.tree, folder / "build", folder / "build.log", "llama", {}};
  build.options.assign(std::begin(kLeanOptions), std::end(kLeanOptions));
  // Later -D options win, so what the person asked for comes last.
  build.options.insert(build.options.end(), source.cmake_options.begin(), source.cmake_options.end());
  if (Status built = build_target(build, say); !built) return built.error();
  return build.folder;
}

Status check_answers(const EngineEntry& entry, const fs::path& log_folder) {
  constexpr std::int64_t kStartLimitNs = 60'000'000'000;
  const Result<EngineSpec> spec = parse_engine_spec(entry.name);
  if (!spec) return spec.error();
  const Result<EngineProgram> program = find_engine_program(*spec);
  if (!program) return program.error();
  const platform::SteadyClock clock;
  const EngineContext context{&clock, -1, kStartLimitNs, log_folder.string()};
  nlohmann::json reply;
  Result<Engine> engine = Engine::start_initialized(*program, context, reply);
  if (!engine) return engine.error();
  const std::string family = reply.value(nlohmann::json::json_pointer("/engine/family"), std::string());
  if (Status ended = engine->shutdown(); !ended) return ended;
  if (family == entry.family) return {};
  return Error::failure(fmt::format("engine {}: its adapter says family \"{}\", its tree is of \"{}\"",
                                    entry.name, family, entry.family));
}

}  // namespace

Result<EngineEntry> build_engine(const Registry& registry, const EngineSource& source,
                                 const fs::path& adapters, const Say& say) {
  if (Status is_tree = check_tree(source.tree); !is_tree) return is_tree.error();
  const fs::path folder = registry.folder_of(source.name);
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed)
    return Error::environment(fmt::format("cannot create {}: {}", folder.string(), failed.message()));
  const Result<std::string> family = family_of_tree(source.tree);
  if (!family) return family.error();
  const Result<fs::path> built = library_folder_of(source, folder, say);
  if (!built) return built.error();
  const Result<EngineLibraries> libraries = find_libraries(*built, folder / "check");
  if (!libraries) return libraries.error();
  if (Status same = check_same_version(source.tree, *libraries, folder / "check"); !same) return same.error();
  const Result<fs::path> adapter = build_adapter(source, *libraries, adapters, folder, say);
  if (!adapter) return adapter.error();
  EngineEntry entry{source.name,
                    "ggml",
                    *adapter,
                    *family,
                    libraries->folders,
                    {},
                    source.tree.string(),
                    options_in_force(*built)};
  for (const fs::path& library : libraries->libraries) {
    Result<EngineLibrary> facts = library_facts(library);
    if (!facts) return facts.error();
    entry.libraries.push_back(std::move(facts).value());
  }
  return entry;
}

Status register_engine(const Registry& registry, const EngineEntry& entry) {
  if (Status saved = registry.save(entry); !saved) return saved;
  Status answers = check_answers(entry, registry.folder_of(entry.name));
  if (!answers) registry.forget(entry.name);
  return answers;
}

Result<std::vector<std::string>> split_cmake_options(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  bool is_open = false;
  char quote = '\0';
  for (const char c : text) {
    if (quote != '\0') {
      if (c == quote)
        quote = '\0';
      else
        word += c;
    } else if (c == '"' || c == '\'') {
      quote = c;
      is_open = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (is_open) words.push_back(word);
      word.clear();
      is_open = false;
    } else {
      word += c;
      is_open = true;
    }
  }
  if (quote != '\0') return Error::bad_input(fmt::format("--cmake: the quote {} is never closed", quote));
  if (is_open) words.push_back(word);
  for (const std::string& option : words) {
    if (option.rfind("-D", 0) != 0 || option.find('=') == std::string::npos) {
      return Error::bad_input(
          fmt::format("--cmake: {} is no -DKEY=VALUE option; only those are passed on", option));
    }
  }
  return words;
}

}  // namespace opledger::session
