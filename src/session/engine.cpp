// Ties child process, channel and protocol client together, and adds to every failure what the log says.
#include "session/engine.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "session/registry.h"

namespace opledger::session {
namespace {

using nlohmann::json;

constexpr int64_t kShutdownLimitNs = 10'000'000'000;
constexpr size_t kTailChars = 240;

std::string next_log_path(const std::string& folder, const std::string& name) {
  static std::atomic<int> count{0};
  return fmt::format("{}/{}-{}-{}.log", folder, name, ::getpid(), ++count);
}

std::string library_path_variable(const EngineEntry& entry) {
  std::string value;
  for (const std::filesystem::path& folder : entry.library_path)
    value += (value.empty() ? "" : ":") + folder.string();
  if (const char* inherited = std::getenv("LD_LIBRARY_PATH"); inherited != nullptr && *inherited != '\0') {
    value += (value.empty() ? "" : ":") + std::string(inherited);
  }
  return "LD_LIBRARY_PATH=" + value;
}

}  // namespace

Result<EngineProgram> find_engine_program(const EngineSpec& spec) {
  EngineProgram program;
  program.name = spec.name;
  if (!spec.program.empty()) {
    program.program = std::filesystem::absolute(spec.program).string();
    std::error_code error;
    if (!std::filesystem::is_regular_file(program.program, error) ||
        ::access(program.program.c_str(), X_OK) != 0) {
      return Error::bad_input(
          fmt::format("engine \"{}\": {} is no executable file; give the path of a program that "
                      "speaks the engine protocol",
                      spec.text, program.program));
    }
    return program;
  }
  Result<std::filesystem::path> cache = cache_folder();
  if (!cache) return cache.error();
  Result<EngineEntry> entry = Registry(*cache).find(spec.name);
  if (!entry) return entry.error();
  if (Status fresh = check_fresh(*entry); !fresh) return fresh.error();
  program.program = entry->adapter.string();
  program.environment.push_back(library_path_variable(*entry));
  return program;
}

Engine::Engine(std::string name, std::string log_path, platform::Child child, const EngineContext& context)
    : name_(std::move(name)),
      log_path_(std::move(log_path)),
      context_(context),
      child_(std::make_unique<platform::Child>(std::move(child))) {
  client_ = std::make_unique<ProtocolClient>(
      name_,
      platform::LineChannel(child_->take_socket(), context_.max_message_bytes, *context_.clock,
                            context_.interrupt_fd),
      *context_.clock);
}

Engine::~Engine() {
  if (child_) child_->kill_group();
}

Result<Engine> Engine::start(const EngineProgram& program, const EngineContext& context) {
  std::error_code error;
  std::filesystem::create_directories(context.log_folder, error);
  platform::ChildOptions options;
  options.program = program.program;
  options.environment = program.environment;
  options.log_path = next_log_path(context.log_folder, program.name);
  Result<platform::Child> child = platform::Child::start(options);
  if (!child) return child.error();
  return Engine(program.name, options.log_path, std::move(*child), context);
}

Result<Engine> Engine::start_initialized(const EngineProgram& program, const EngineContext& context,
                                         json& reply) {
  Result<Engine> engine = start(program, context);
  if (!engine) return engine;
  Result<json> answer = engine->call("initialize", {{"protocol", kProtocolVersion}});
  if (!answer) return answer.error();
  const json version = answer->is_object() ? answer->value("protocol", json()) : json();
  if (version != kProtocolVersion) {
    engine->kill();
    return Error::bad_input(
        fmt::format("{} speaks protocol {}, this opledger speaks \"{}\"; add the engine again with "
                    "this version of opledger",
                    program.name, version.dump(), kProtocolVersion));
  }
  reply = std::move(*answer);
  return engine;
}

Error Engine::with_log(const Error& error) {
  std::string text = error.message;
  // A closed socket usually means that the process is about to be reapable; a hang means that it never will
  // be.
  if (const auto end = child_->wait_end(context_.clock->now_ns() + 500'000'000, *context_.clock); end) {
    text += fmt::format(": its process {}", end->describe());
  } else {
    child_->kill_group();
  }
  const std::string tail = platform::log_tail(log_path_, kTailChars);
  text += tail.empty() ? "; its log is empty" : fmt::format("; its log ends: {}", tail);
  return {error.kind, fmt::format("{} (log: {})", text, log_path_)};
}

Error Engine::explained(const Error& error) {
  return is_gone() && error.kind == Error::Kind::kFailure ? with_log(error) : error;
}

Status Engine::begin(const std::string& method, json params, Expected expected) {
  Status status = client_->begin(method, std::move(params), context_.request_limit_ns, std::move(expected));
  return status ? status : Status{explained(status.error())};
}

Result<std::optional<json>> Engine::advance() {
  Result<std::optional<json>> reply = client_->advance();
  return reply ? std::move(reply) : explained(reply.error());
}

Result<json> Engine::call(const std::string& method, json params, Expected expected) {
  if (Status status = begin(method, std::move(params), std::move(expected)); !status) return status.error();
  while (true) {
    Result<std::optional<json>> reply = advance();
    if (!reply) return reply.error();
    if (reply->has_value()) return std::move(**reply);
  }
}

Status Engine::shutdown() {
  resume();
  Result<json> reply = call("shutdown", json::object());
  if (!reply) return reply.error();
  const auto end = child_->wait_end(context_.clock->now_ns() + kShutdownLimitNs, *context_.clock);
  if (!end || end->by_signal || end->code != 0) {
    return with_log(Error::failure(fmt::format("{} did not exit with 0 after shutdown", name_)));
  }
  std::error_code ignored;
  std::filesystem::remove(log_path_, ignored);
  return {};
}

std::optional<platform::ProcessEnd> Engine::close_socket_and_wait(int64_t limit_ns) {
  resume();
  client_->close();
  return child_->wait_end(context_.clock->now_ns() + limit_ns, *context_.clock);
}

void Engine::kill() {
  child_->kill_group();
}

}  // namespace opledger::session
