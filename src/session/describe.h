// What one engine executes, without measuring it: the work of `opledger graph`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/graph/graph.h"
#include "core/model/model_facts.h"
#include "core/record/record.h"
#include "platform/clock.h"
#include "platform/interrupt.h"
#include "session/workloads.h"

namespace opledger::session {

struct DescribeOptions {
  std::string spec;
  WorkloadRequest workloads;
  std::map<std::string, std::string> flags;
  bool probe = true;
  uint64_t seed = 1;
  std::string log_folder;
  int64_t engine_limit_ns = 600'000'000'000;
};

struct Described {
  std::string family;
  core::ModelFacts model;
  std::vector<core::WorkloadFacts> workloads;  ///< same order as graphs
  std::vector<core::WorkloadGraph> graphs;
  std::string json_text;  ///< {"engine": initialize's reply, "load": load's, "graphs": [graph's replies]}
};

/// Starts the engine, loads the model, asks for the graph of every workload. An engine that dies while it
/// probes is started again and asked without.
Result<Described> describe_engine(const DescribeOptions& options, const platform::Clock& clock,
                                  const platform::Interrupt& interrupt);

}  // namespace opledger::session
