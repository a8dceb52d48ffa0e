// `opledger graph`: what one engine really executes for a workload. Times nothing.
#include "core/graph/graph.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/bench_flags.h"
#include "cli/command.h"
#include "core/model/completeness.h"
#include "platform/clock.h"
#include "platform/interrupt.h"
#include "platform/machine.h"
#include "session/describe.h"
#include "session/registry.h"

namespace opledger::cli {
namespace {

constexpr const char* kGraphUsage =
    "ENGINE is NAME, NAME@flag=value,... or exec:/path/to/program.\n"
    "  -m FILE            model\n"
    "  -p N[,N]           prefill of N tokens            (default 512)\n"
    "  -n N[,N] -d D[,D]  decode of N tokens at depth D\n"
    "  -t N, -fa 1, ...   the engine's flags, as llama-bench spells them\n"
    "  --json FILE|-      the whole graph instead of a summary\n"
    "  --no-probe x       do not look for fused nodes (x: yes or no)\n"
    "  --engine-timeout T how long one answer may take   (default 10m)";

// Measured, but a check failed.
constexpr int kCheckFailed = 4;

struct CategoryCount {
  int64_t nodes = 0, units = 0, read_bytes = 0, flop = 0;
};

/// What one pass of the workload executes, by category.
std::map<std::string, CategoryCount> counts_of(const core::WorkloadGraph& graph, const core::RuleSet& rules) {
  std::map<std::string, CategoryCount> counts;
  for (size_t g = 0; g < graph.graphs.size(); ++g) {
    const core::Graph& one = graph.graphs[g];
    const int calls = graph.calls_of(static_cast<int>(g));
    const std::vector<std::string> categories = core::categories_of(rules, one);
    for (size_t n = 0; n < one.nodes.size(); ++n) {
      if (one.nodes[n].is_view) continue;
      CategoryCount& count = counts[categories[n]];
      count.nodes += calls;
      count.read_bytes += one.nodes[n].read_bytes * calls;
      count.flop += one.nodes[n].flop * calls;
    }
    for (const core::Unit& unit : one.units)
      counts[categories[static_cast<size_t>(unit.nodes.front())]].units += calls;
  }
  return counts;
}

void print_head(const core::WorkloadGraph& graph) {
  int64_t views = 0;
  int64_t together = 0;
  int64_t units = 0;
  for (size_t g = 0; g < graph.graphs.size(); ++g) {
    const int calls = graph.calls_of(static_cast<int>(g));
    for (const core::Node& node : graph.graphs[g].nodes) views += node.is_view ? calls : 0;
    for (const core::Unit& unit : graph.graphs[g].units) {
      units += calls;
      together += unit.nodes.size() > 1 ? calls : 0;
    }
  }
  fmt::print("{}: {} graph calls of {} graphs; {} units, {} of them of several nodes; {} views dropped{}\n",
             graph.workload, graph.calls.size(), graph.graphs.size(), units, together, views,
             graph.probe_ran ? "" : "; fusion was not looked for");
}

/// True when the graph holds all of the model's work, or when nobody can tell (the reason is printed).
bool print_completeness(const core::Completeness& found) {
  if (!found.ran) {
    fmt::print("  complete: not run: {}\n", found.reason);
    return true;
  }
  fmt::print("  complete: {}: {} working nodes, {} of {} weight bytes read{}\n",
             found.complete ? "held" : "failed", found.working_nodes, found.read_weight_bytes,
             found.file_weight_bytes,
             found.flop_ratio ? fmt::format(", FLOPs {:.4f} of the closed form", *found.flop_ratio) : "");
  for (const std::string& problem : found.problems) fmt::print("    {}\n", problem);
  for (const std::string& note : found.notes) fmt::print("    {}\n", note);
  return found.complete;
}

/// Whether every graph holds all of its model's work.
bool print_summary(const session::Described& described, const core::RuleSet& rules) {
  bool is_complete = true;
  for (size_t w = 0; w < described.graphs.size(); ++w) {
    const core::WorkloadGraph& graph = described.graphs[w];
    print_head(graph);
    fmt::print("  {:<20} {:>8} {:>8} {:>12} {:>12}\n", "category", "nodes", "units", "MB read", "MFLOP");
    for (const auto& [category, count] : counts_of(graph, rules)) {
      fmt::print("  {:<20} {:>8} {:>8} {:>12.3f} {:>12.3f}\n", category, count.nodes, count.units,
                 static_cast<double>(count.read_bytes) * 1e-6, static_cast<double>(count.flop) * 1e-6);
    }
    const core::WorkloadFacts& facts = described.workloads[w];
    is_complete = print_completeness(core::check_complete(graph, rules, described.model,
                                                          {facts.tokens_per_pass, facts.depth_tokens})) &&
                  is_complete;
  }
  return is_complete;
}

Result<int> run_graph(const std::vector<std::string>& arguments) {
  Result<BenchFlags> parsed = parse_bench_flags(arguments, {"json", "no-probe", "engine-timeout"});
  if (!parsed) return parsed.error();
  if (parsed->words.size() != 1)
    return Error::bad_input("graph: give one engine (see `opledger graph --help`)");
  session::DescribeOptions options;
  options.spec = parsed->words.front();
  if (parsed->flags.count("p") == 0 && parsed->flags.count("n") == 0) parsed->flags["p"] = "512";
  Result<session::WorkloadRequest> workloads = take_workloads(parsed->flags);
  if (!workloads) return workloads.error();
  options.workloads = *workloads;
  options.flags = parsed->flags;
  options.probe = parsed->options["no-probe"] != "yes";
  if (const std::string& limit = parsed->options["engine-timeout"]; !limit.empty()) {
    Result<double> seconds = parse_duration_s("--engine-timeout", limit);
    if (!seconds) return seconds.error();
    options.engine_limit_ns = static_cast<int64_t>(*seconds * 1e9);
  }
  Result<std::filesystem::path> cache = session::cache_folder();
  if (!cache) return cache.error();
  options.log_folder = (*cache / "logs").string();

  const platform::SteadyClock clock;
  const platform::Interrupt interrupt;
  Result<session::Described> described = session::describe_engine(options, clock, interrupt);
  if (!described) return described.error();
  if (const std::string& path = parsed->options["json"]; !path.empty()) {
    if (Status status = write_output("--json", path, described->json_text); !status) return status.error();
    return 0;
  }
  Result<std::shared_ptr<const core::RuleSet>> rules = rules_of_family(described->family);
  if (!rules) return rules.error();
  return print_summary(*described, **rules) ? 0 : kCheckFailed;
}

}  // namespace

void add_graph(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("graph", "show what an engine really executes for a workload");
  command->footer(kGraphUsage);
  command->prefix_command();
  command->callback(
      [command, &action] { action = [words = command->remaining()] { return run_graph(words); }; });
}

}  // namespace opledger::cli
