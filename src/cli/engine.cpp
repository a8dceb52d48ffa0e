// `opledger engine`: which engines this machine knows, and how one joins them. Measures nothing.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <string>
#include <unistd.h>

#include "cli/command.h"
#include "cli/engine_check.h"
#include "session/engine_build.h"
#include "session/registry.h"

namespace opledger::cli {
namespace {

namespace fs = std::filesystem;
using session::EngineEntry;
using session::Registry;

struct AddFlags {
  std::string name;
  std::string from;
  std::string build;
  std::string cmake;
  std::string lib;
  std::string headers;
};

Result<Registry> open_registry() {
  Result<fs::path> cache = session::cache_folder();
  if (!cache) return cache.error();
  return Registry(std::move(cache).value());
}

Result<fs::path> existing_folder(const std::string& flag, const std::string& text) {
  std::error_code failed;
  const fs::path folder = fs::canonical(text, failed);
  if (failed || !fs::is_directory(folder, failed)) {
    return Error::bad_input(fmt::format("{} {}: there is no such folder", flag, text));
  }
  return folder;
}

// Flags to a source; which of the two ways in is meant must be clear from them alone.
Result<session::EngineSource> source_of(const AddFlags& flags) {
  if (!session::is_engine_name(flags.name)) {
    return Error::bad_input(fmt::format("{} is no engine name: use a-z, 0-9, _, . and -", flags.name));
  }
  const bool is_ready_made = !flags.lib.empty() || !flags.headers.empty();
  if (is_ready_made == !flags.from.empty()) {
    return Error::bad_input(
        "give either --from DIR (a source tree), or --lib DIR and --headers DIR (built libraries and their "
        "headers)");
  }
  if (is_ready_made && (flags.lib.empty() || flags.headers.empty())) {
    return Error::bad_input(
        fmt::format("{} is missing: libraries and headers of the same version are needed together",
                    flags.lib.empty() ? "--lib" : "--headers"));
  }
  if (is_ready_made && !flags.build.empty())
    return Error::bad_input("--build belongs to --from: leave it out with --lib");
  if (!flags.cmake.empty() && (is_ready_made || !flags.build.empty())) {
    return Error::bad_input(
        "--cmake has no effect on libraries that are already built: leave it out, or leave out --build");
  }
  session::EngineSource source;
  source.name = flags.name;
  Result<fs::path> tree =
      is_ready_made ? existing_folder("--headers", flags.headers) : existing_folder("--from", flags.from);
  if (!tree) return tree.error();
  source.tree = std::move(tree).value();
  if (is_ready_made || !flags.build.empty()) {
    Result<fs::path> libraries =
        is_ready_made ? existing_folder("--lib", flags.lib) : existing_folder("--build", flags.build);
    if (!libraries) return libraries.error();
    source.libraries = std::move(libraries).value();
  }
  Result<std::vector<std::string>> options = session::split_cmake_options(flags.cmake);
  if (!options) return options.error();
  source.cmake_options = std::move(options).value();
  return source;
}

// Build steps on a terminal overwrite one line; elsewhere only the steps that name something are printed.
class ProgressLine {
 public:
  explicit ProgressLine(std::string name)
      : name_(std::move(name)), is_terminal_(isatty(STDERR_FILENO) == 1) {}

  void say(const std::string& line) {
    const bool is_count = !line.empty() && line.front() == '[';
    if (is_count && !is_terminal_) return;
    fmt::print(stderr, "{}{}: {}{}", is_open_ ? "\r" : "", name_, line, is_count ? "" : "\n");
    is_open_ = is_count;
  }
  void close() {
    if (is_open_) fmt::print(stderr, "\n");
    is_open_ = false;
  }

 private:
  std::string name_;
  bool is_terminal_;
  bool is_open_ = false;
};

Result<int> add(const AddFlags& flags) {
  const Result<session::EngineSource> source = source_of(flags);
  if (!source) return source.error();
  const Result<Registry> registry = open_registry();
  if (!registry) return registry.error();
  ProgressLine progress(flags.name);
  const Result<EngineEntry> entry =
      session::build_engine(*registry, *source, fs::path(OPLEDGER_SOURCE_DIR) / "engines",
                            [&progress](const std::string& line) { progress.say(line); });
  progress.close();
  if (!entry) return entry.error();
  if (Status registered = session::register_engine(*registry, *entry); !registered) return registered.error();
  fmt::print("engine {} is ready ({}, from {})\n", entry->name, entry->family, entry->source);
  return 0;
}

Result<int> list() {
  const Result<Registry> registry = open_registry();
  if (!registry) return registry.error();
  const Result<std::vector<EngineEntry>> entries = registry->list();
  if (!entries) return entries.error();
  if (entries->empty())
    fmt::print("no engine is known: add one with `opledger engine add NAME --from DIR`\n");
  for (const EngineEntry& entry : *entries) {
    const bool is_fresh = session::check_fresh(entry).is_ok();
    fmt::print("{:<16} {:<14} {:<6} {}\n", entry.name, entry.family, is_fresh ? "ready" : "stale",
               entry.source);
  }
  return 0;
}

Result<int> show(const std::string& name) {
  const Result<Registry> registry = open_registry();
  if (!registry) return registry.error();
  const Result<EngineEntry> entry = registry->find(name);
  if (!entry) return entry.error();
  fmt::print("name     {}\nfamily   {}\nsource   {}\nadapter  {}\n", entry->name, entry->family,
             entry->source, entry->adapter.string());
  for (const session::EngineLibrary& library : entry->libraries) {
    fmt::print("library  {} ({} bytes, xxh3 {})\n", library.path.string(), library.bytes, library.xxh3);
  }
  for (const auto& [key, value] : entry->build) fmt::print("build    {}={}\n", key, value);
  if (Status fresh = session::check_fresh(*entry); !fresh) return fresh.error();
  fmt::print("state    ready\n");
  return 0;
}

Result<int> remove(const std::string& name) {
  const Result<Registry> registry = open_registry();
  if (!registry) return registry.error();
  if (Status removed = registry->remove(name); !removed) return removed.error();
  fmt::print("engine {} is removed\n", name);
  return 0;
}

void add_add(CLI::App& engine, Action& action) {
  auto flags = std::make_shared<AddFlags>();
  CLI::App* command = engine.add_subcommand("add", "build an adapter for an engine and remember both");
  command->add_option("name", flags->name, "what to call the engine")->required();
  command->add_option("--from", flags->from, "llama.cpp-family source tree to build")->type_name("DIR");
  command->add_option("--build", flags->build, "existing build of that tree, used as it is")
      ->type_name("DIR");
  command
      ->add_option("--cmake", flags->cmake, "options for that build, as one text: \"-DGGML_NATIVE=ON ...\"")
      ->type_name("OPTIONS");
  command->add_option("--lib", flags->lib, "folder with ready-made libllama and libggml")->type_name("DIR");
  command->add_option("--headers", flags->headers, "source tree of the same version as --lib")
      ->type_name("DIR");
  command->callback([flags, &action] { action = [flags] { return add(*flags); }; });
}

void add_named(CLI::App& engine, Action& action, const std::string& word, const std::string& what,
               Result<int> (*run)(const std::string&)) {
  auto name = std::make_shared<std::string>();
  CLI::App* command = engine.add_subcommand(word, what);
  command->add_option("name", *name, "the engine")->required();
  command->callback([name, run, &action] { action = [name, run] { return run(*name); }; });
}

}  // namespace

void add_engine(CLI::App& app, Action& action) {
  CLI::App* engine = app.add_subcommand("engine", "add, list, show, check and remove engines");
  engine->require_subcommand(1);
  add_add(*engine, action);
  engine->add_subcommand("list", "every engine, and whether it is still what was added")->callback([&action] {
    action = [] { return list(); };
  });
  add_named(*engine, action, "show", "where an engine comes from, its libraries and build options", show);
  add_engine_check(*engine, action);
  add_named(*engine, action, "remove", "forget an engine and delete its builds", remove);
}

}  // namespace opledger::cli
