// `opledger skeleton`: writes a model with the shapes of a real one and random weights.
#include "gguf/skeleton.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/command.h"

namespace opledger::cli {
namespace {

struct SkeletonFlags {
  std::string architecture;
  std::string routing = "uniform";
  std::string output;
  std::string json;
  int experts = 0;
  int vocab_tokens = 0;
  gguf::SkeletonSpec spec;
};

nlohmann::json summary_json(const SkeletonFlags& flags, const gguf::SkeletonPlan& plan) {
  nlohmann::json tensors = nlohmann::json::array();
  for (const gguf::TensorSpec& tensor : plan.layout.tensors) {
    tensors.push_back({{"name", tensor.name},
                       {"type", tensor.type->name},
                       {"ne", tensor.ne},
                       {"bytes", gguf::bytes_of(tensor)}});
  }
  return {{"schema", "opledger-skeleton"},
          {"version", 1},
          {"path", flags.output},
          {"bytes", gguf::file_bytes(plan.layout)},
          {"architecture", flags.architecture},
          {"layers", flags.spec.layers},
          {"routing", gguf::routing_text(flags.spec.routing)},
          {"seed", flags.spec.seed},
          {"tensors", std::move(tensors)}};
}

Status write_summary(const SkeletonFlags& flags, const gguf::SkeletonPlan& plan) {
  const std::string text = summary_json(flags, plan).dump(2) + "\n";
  if (flags.json == "-") {
    std::fputs(text.c_str(), stdout);
    return {};
  }
  std::FILE* file = std::fopen(flags.json.c_str(), "w");
  const bool is_written = file != nullptr && std::fputs(text.c_str(), file) >= 0;
  const bool is_closed = file != nullptr && std::fclose(file) == 0;
  if (is_written && is_closed) return {};
  return Error::bad_input(fmt::format("--json {}: cannot be written; give another name", flags.json));
}

Result<int> run(SkeletonFlags flags) {
  const Result<gguf::Architecture> architecture = gguf::parse_architecture(flags.architecture);
  if (!architecture) return architecture.error();
  const Result<gguf::RoutingSpec> routing = gguf::parse_routing(flags.routing);
  if (!routing) return routing.error();
  flags.spec.architecture = *architecture;
  flags.spec.routing = *routing;
  const Result<gguf::SkeletonPlan> plan = gguf::plan_skeleton(flags.spec);
  if (!plan) return plan.error();
  if (Status written = gguf::write_skeleton(*plan, flags.output); !written) return written.error();
  if (!flags.json.empty()) {
    if (Status written = write_summary(flags, *plan); !written) return written.error();
  }
  if (flags.json != "-") {
    fmt::print("{}: {} skeleton, {} layers, {} tensors, {:.1f} MB\n", flags.output, flags.architecture,
               flags.spec.layers, plan->layout.tensors.size(),
               static_cast<double>(gguf::file_bytes(plan->layout)) / 1e6);
  }
  return 0;
}

}  // namespace

void add_skeleton(CLI::App& app, Action& action) {
  auto flags = std::make_shared<SkeletonFlags>();
  CLI::App* command =
      app.add_subcommand("skeleton", "write a model with the shapes of a real one and random weights");
  command->add_option("--arch", flags->architecture, "qwen3moe, qwen35moe or llama")->required();
  command->add_option("--layers", flags->spec.layers, "how many layers")->capture_default_str();
  CLI::Option* experts = command->add_option("--experts", flags->experts, "experts per layer (default 64)");
  command->add_option("--type", flags->spec.type, "of the large matrices: Q4_0, Q4_K, Q6_K, Q8_0, F16 or F32")
      ->capture_default_str();
  command->add_option("--routing", flags->routing, "popularity of the experts: uniform or zipf:S")
      ->capture_default_str();
  CLI::Option* vocab = command->add_option("--vocab", flags->vocab_tokens, "tokens in the vocabulary");
  command->add_option("--seed", flags->spec.seed, "of the weights")->capture_default_str();
  command->add_option("-o,--output", flags->output, "file to write")->type_name("FILE")->required();
  command->add_option("--json", flags->json, "what was written, as JSON, to a file or -")->type_name("FILE");
  command->callback([flags, experts, vocab, &action] {
    if (experts->count() > 0) flags->spec.experts = flags->experts;
    if (vocab->count() > 0) flags->spec.vocab_tokens = flags->vocab_tokens;
    action = [flags] { return run(*flags); };
  });
}

}  // namespace opledger::cli
