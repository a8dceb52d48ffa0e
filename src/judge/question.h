// What is judged. Records of pairs and the history keep it, so that answers to one question are never taken
// for answers to another.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace opledger::judge {

struct Question {
  std::string a, b;    ///< commands, or engines as the command line names them
  std::string flags;   ///< of both engines; empty for commands
  std::string figure;  ///< the regular expression that finds the figure in the output; empty: elapsed time
  bool is_higher_better = false;
};

nlohmann::json to_json(const Question& question);

}  // namespace opledger::judge
