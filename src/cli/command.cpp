#include "cli/command.h"

#include <cstring>
#include <fmt/format.h>

namespace opledger::cli {

Error lost_output(int problem) {
  return Error::environment(
      fmt::format("stdout: cannot be written ({}): what was printed is not whole; send it elsewhere",
                  problem == 0 ? "closed" : std::strerror(problem)));
}

}  // namespace opledger::cli
