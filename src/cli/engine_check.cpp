// Puts an engine through the conformance suite and prints what held.
#include "cli/engine_check.h"

#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <string>

#include "gguf/reader.h"
#include "platform/clock.h"
#include "platform/interrupt.h"
#include "platform/machine.h"
#include "session/conformance.h"
#include "session/registry.h"

namespace opledger::cli {
namespace {

struct CheckFlags {
  std::string engine;
  std::string model;
};

const char* status_word(session::ConformanceStatus status) {
  switch (status) {
    case session::ConformanceStatus::kHeld:
      return "held";
    case session::ConformanceStatus::kFailed:
      return "FAILED";
    default:
      return "not run";
  }
}

Result<int> check(const CheckFlags& flags) {
  Result<session::EngineSpec> spec = session::parse_engine_spec(flags.engine);
  if (!spec) return spec.error();
  Result<session::EngineProgram> program = session::find_engine_program(*spec);
  if (!program) return program.error();
  session::ConformanceOptions options;
  options.program = *program;
  if (!flags.model.empty()) {
    const Result<gguf::GgufFile> model = gguf::read_gguf(flags.model);
    if (!model) return model.error();
    options.model_path = flags.model;
  }
  options.threads = platform::machine_facts().cores;
  options.on_check = [](const session::ConformanceCheck& one) {
    fmt::print("{:<8} {}{}{}\n", status_word(one.status), one.name, one.text.empty() ? "" : ": ", one.text);
  };
  Result<std::filesystem::path> cache = session::cache_folder();
  if (!cache) return cache.error();
  const platform::SteadyClock clock;
  const platform::Interrupt interrupt;
  session::EngineContext context;
  context.clock = &clock;
  context.interrupt_fd = interrupt.fd();
  context.log_folder = (*cache / "logs").string();
  const Result<session::ConformanceReport> report = session::check_conformance(options, context);
  if (!report) return report.error();
  if (interrupt.is_requested()) return Error{Error::Kind::kInterrupted, "interrupted"};
  if (report->conforms()) return 0;
  return Error::failure(
      fmt::format("{} does not keep the engine protocol (see the lines marked FAILED)", program->name));
}

}  // namespace

void add_engine_check(CLI::App& engine, Action& action) {
  auto flags = std::make_shared<CheckFlags>();
  CLI::App* command = engine.add_subcommand("check", "put an engine through the protocol");
  command->add_option("engine", flags->engine, "NAME, or exec:/path/to/program")->required();
  command
      ->add_option("-m,--model", flags->model,
                   "a model; without one only the beginning and the end are checked")
      ->type_name("FILE");
  command->callback([flags, &action] { action = [flags] { return check(*flags); }; });
}

}  // namespace opledger::cli
