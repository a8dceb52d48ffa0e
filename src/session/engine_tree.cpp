// Structures move between versions and forks, so an adapter compiled against other headers than its library's
// reads wrong fields and may still run. Every check here exists to catch that before anything is measured.
#include "session/engine_tree.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <regex>
#include <sstream>
#include <system_error>

#include "session/build_command.h"

namespace opledger::session {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

fs::path ggml_header(const fs::path& tree) {
  return tree / "ggml" / "include" / "ggml.h";
}

bool has_llama_source(const fs::path& tree) {
  std::error_code failed;
  for (const fs::directory_entry& file : fs::directory_iterator(tree / "src", failed)) {
    const std::string name = file.path().filename().string();
    if (name.rfind("llama", 0) == 0 && file.path().extension() == ".cpp") return true;
  }
  return false;
}

std::vector<fs::path> bundled_folders(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const fs::path& above : {folder / "..", folder / ".." / ".."}) {
    std::error_code failed;
    for (const fs::directory_entry& entry : fs::directory_iterator(above, failed)) {
      if (entry.path().extension() == ".libs" && is_folder(entry.path())) {
        found.push_back(entry.path().lexically_normal());
      }
    }
  }
  return found;
}

Result<fs::path> find_libllama(const fs::path& folder) {
  for (const char* below : {"", "bin", "lib", "lib64", "src"}) {
    const fs::path candidate = (folder / below / "libllama.so").lexically_normal();
    if (is_file(candidate)) return candidate;
  }
  return Error::bad_input(
      fmt::format("{} holds no libllama.so (nor its bin, lib, lib64, src): build the target `llama` with "
                  "-DBUILD_SHARED_LIBS=ON",
                  folder.string()));
}

std::string joined(const std::vector<fs::path>& folders) {
  std::string text;
  for (const fs::path& folder : folders) text += (text.empty() ? "" : ":") + folder.string();
  return text;
}

Status write_text(const fs::path& path, const std::string& text) {
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out) return Error::environment(fmt::format("cannot write {}: is there room?", path.string()));
  return {};
}

bool is_system_folder(const fs::path& folder) {
  const std::string text = folder.string();
  return text.rfind("/lib", 0) == 0 || text.rfind("/usr/lib", 0) == 0;
}

struct Dependency {
  std::string name;
  fs::path path;  // empty when the loader did not find it
};

std::vector<Dependency> parse_ldd(const std::string& text) {
  std::vector<Dependency> found;
  static const std::regex line_form(R"(^\s*(\S+) => (?:(/.*) \(0x[0-9a-f]+\)|not found)\s*$)");
  std::istringstream in(text);
  std::string line;
  while (std::getline(in, line)) {
    std::smatch match;
    if (!std::regex_match(line, match, line_form)) continue;
    found.push_back(
        {match[1].str(), match[2].matched ? fs::path(match[2].str()).lexically_normal() : fs::path()});
  }
  return found;
}

// What `argv` prints, through a fresh log in `scratch`. The exit status is for the caller to judge.
struct Printed {
  int status = 0;
  std::string text;
};
Result<Printed> run_and_read(const std::vector<std::string>& argv, const fs::path& log,
                             const std::vector<fs::path>& search) {
  std::error_code ignored;
  fs::create_directories(log.parent_path(), ignored);
  fs::remove(log, ignored);
  BuildCommand command{argv, log, {}, {}};
  if (!search.empty()) command.environment.push_back("LD_LIBRARY_PATH=" + joined(search));
  const Result<int> status = run_build_command(command);
  if (!status) return status.error();
  return Printed{*status, read_log(log)};
}

std::string probe_source(const std::vector<std::string>& ops, bool has_version) {
  std::string source =
      "#include \"ggml.h\"\n#include <stdio.h>\n#include <string.h>\nstatic const char* const ops[] = {\n";
  for (const std::string& op : ops) source += "  \"" + op + "\",\n";
  // ggml_tensor_overhead() is an object header of 32 bytes and a tensor, in every version since 2023.
  source += R"(};
int main(void) {
  for (int i = 0; i < (int)(sizeof ops / sizeof ops[0]); ++i) {
    const char* name = ggml_op_name((enum ggml_op)i);
    if (name == NULL || strncmp(name, ops[i], 63) != 0) {
      printf("operation %d is %s in the headers and %.40s in the library\n", i, ops[i], name ? name : "nothing");
      return 1;
    }
  }
  const size_t tensor = ggml_tensor_overhead() - 32;
  if (tensor != sizeof(struct ggml_tensor)) {
    printf("a tensor takes %zu bytes in the headers and %zu in the library\n", sizeof(struct ggml_tensor), tensor);
    return 1;
  }
)";
  if (has_version) source += "  printf(\"version %s\\n\", ggml_version());\n";
  return source + "  return 0;\n}\n";
}

// The version that a tree's own CMake file states; empty for trees that state none.
std::string version_of_tree(const fs::path& tree) {
  const std::string text = read_log(tree / "ggml" / "CMakeLists.txt");
  std::string version;
  for (const char* part : {"MAJOR", "MINOR", "PATCH"}) {
    std::smatch match;
    const std::regex line(fmt::format(R"(set\(GGML_VERSION_{}\s+(\d+)\))", part));
    if (!std::regex_search(text, match, line)) return {};
    version += (version.empty() ? "" : ".") + match[1].str();
  }
  return version;
}

// Wheels and installs put public headers near the libraries: the strongest witness there is.
Status compare_shipped_headers(const fs::path& tree, const fs::path& library_folder) {
  for (const char* up : {"..", "../.."}) {
    const fs::path shipped = (library_folder / up / "include").lexically_normal();
    for (const auto& [name, ours] :
         {std::pair{"ggml.h", ggml_header(tree)}, std::pair{"llama.h", tree / "include" / "llama.h"}}) {
      if (!is_file(shipped / name) || fs::equivalent(shipped / name, ours)) continue;
      if (read_log(shipped / name) != read_log(ours)) {
        return Error::bad_input(
            fmt::format("headers and libraries are of different versions: {} differs from {}, which came "
                        "with the libraries: give --headers of the same version",
                        ours.string(), (shipped / name).string()));
      }
    }
  }
  return {};
}

Result<fs::path> compile_probe(const fs::path& tree, const std::vector<std::string>& ops,
                               const EngineLibraries& libraries, const fs::path& scratch) {
  const fs::path source = scratch / "headers_match.c";
  const fs::path program = scratch / "headers_match";
  const bool has_version = read_log(ggml_header(tree)).find("ggml_version(") != std::string::npos;
  if (const Status written = write_text(source, probe_source(ops, has_version)); !written)
    return written.error();
  std::vector<std::string> argv = {
      "cc", "-I", (tree / "ggml" / "include").string(), source.string(), "-o", program.string()};
  for (const fs::path& library : libraries.libraries) argv.push_back(library.string());
  for (const fs::path& folder : libraries.folders) argv.push_back("-Wl,-rpath-link," + folder.string());
  const Result<Printed> compiled = run_and_read(argv, scratch / "headers_match.log", {});
  if (!compiled) return compiled.error();
  if (compiled->status != 0) {
    return Error::bad_input(
        fmt::format("headers {} and libraries {} do not fit: {} (log: {})", tree.string(),
                    libraries.libraries.front().string(),
                    first_build_error(compiled->text).value_or("the compiler gave no reason"),
                    (scratch / "headers_match.log").string()));
  }
  return program;
}

}  // namespace

Status check_tree(const fs::path& tree) {
  const std::string place = tree.string();
  const auto lacks = [&place](std::string_view what) {
    return Error::bad_input(
        fmt::format("{} is no llama.cpp source tree: {}; give the folder that holds CMakeLists.txt, ggml, "
                    "src and include",
                    place, what));
  };
  if (!is_folder(tree)) return lacks("there is no such folder");
  if (!is_file(tree / "CMakeLists.txt")) return lacks("it has no CMakeLists.txt");
  if (!is_file(ggml_header(tree))) return lacks("it has no ggml/include/ggml.h");
  if (!is_file(tree / "include" / "llama.h")) return lacks("it has no include/llama.h");
  if (!has_llama_source(tree)) return lacks("it has no src/llama*.cpp");
  return {};
}

std::vector<std::string> op_names_of_header(const std::string& ggml_h) {
  std::vector<std::string> names;
  const std::size_t begin = ggml_h.find("enum ggml_op {");
  if (begin == std::string::npos) return names;
  std::istringstream in(ggml_h.substr(begin));
  std::string line;
  static const std::regex name_form(R"(^\s*GGML_OP_(\w+)\b)");
  while (std::getline(in, line) && line.find('}') == std::string::npos) {
    std::smatch match;
    if (!std::regex_search(line, match, name_form)) continue;
    if (match[1].str() == "COUNT") break;
    names.push_back(match[1].str());
  }
  return names;
}

Result<std::string> family_of_tree(const fs::path& tree) {
  const std::vector<std::string> ops = op_names_of_header(read_log(ggml_header(tree)));
  if (ops.empty())
    return Error::bad_input(fmt::format("{} declares no enum ggml_op", ggml_header(tree).string()));
  const bool is_ik = std::find(ops.begin(), ops.end(), "MOE_FUSED_UP_GATE") != ops.end();
  return std::string(is_ik ? "ik_llama.cpp" : "llama.cpp");
}

Result<EngineLibraries> find_libraries(const fs::path& folder, const fs::path& scratch) {
  const Result<fs::path> libllama = find_libllama(folder);
  if (!libllama) return libllama.error();
  std::vector<fs::path> search = {libllama->parent_path()};
  for (fs::path& bundled : bundled_folders(libllama->parent_path())) search.push_back(std::move(bundled));
  const Result<Printed> printed = run_and_read({"ldd", libllama->string()}, scratch / "ldd.log", search);
  if (!printed) return printed.error();
  if (printed->status != 0) {
    return Error::bad_input(fmt::format("the loader refuses {}: {}", libllama->string(), printed->text));
  }
  EngineLibraries result{{*libllama}, {libllama->parent_path()}};
  for (const Dependency& dependency : parse_ldd(printed->text)) {
    if (dependency.path.empty()) {
      return Error::bad_input(fmt::format("{} needs {}, which is neither installed nor beside it",
                                          libllama->string(), dependency.name));
    }
    if (dependency.name.rfind("libggml", 0) == 0) result.libraries.push_back(dependency.path);
    const fs::path home = dependency.path.parent_path();
    if (!is_system_folder(home) &&
        std::find(result.folders.begin(), result.folders.end(), home) == result.folders.end()) {
      result.folders.push_back(home);
    }
  }
  if (result.libraries.size() == 1) {
    return Error::bad_input(
        fmt::format("{} loads no ggml library: build the target `llama` with -DBUILD_SHARED_LIBS=ON",
                    libllama->string()));
  }
  return result;
}

Status check_same_version(const fs::path& tree, const EngineLibraries& libraries, const fs::path& scratch) {
  const fs::path library_folder = libraries.libraries.front().parent_path();
  if (Status same = compare_shipped_headers(tree, library_folder); !same) return same;
  const std::vector<std::string> ops = op_names_of_header(read_log(ggml_header(tree)));
  if (ops.empty())
    return Error::bad_input(fmt::format("{} declares no enum ggml_op", ggml_header(tree).string()));
  const Result<fs::path> program = compile_probe(tree, ops, libraries, scratch);
  if (!program) return program.error();
  const Result<Printed> printed =
      run_and_read({program->string()}, scratch / "headers_match.txt", libraries.folders);
  if (!printed) return printed.error();
  const std::string said = printed->text.substr(0, printed->text.find('\n'));
  const auto differ = [&tree, &library_folder](const std::string& how) {
    return Error::bad_input(fmt::format(
        "headers and libraries are of different versions ({} and {}): {}: give both of the same version",
        tree.string(), library_folder.string(), how));
  };
  if (printed->status != 0)
    return differ(said.empty() ? fmt::format("the probe ended with {}", printed->status) : said);
  const std::string stated = version_of_tree(tree);
  if (!stated.empty() && said.rfind("version ", 0) == 0 && said.substr(8).rfind(stated, 0) != 0) {
    return differ(fmt::format("the headers say {} and the library {}", stated, said.substr(8)));
  }
  return {};
}

}  // namespace opledger::session
