// The fake engine's program: takes its script from beside the name it was started by, its socket from the
// parent.
#include <cstdlib>

#include "fake_engine.h"
#include "fake_script.h"

int main(int /*argc*/, char** argv) {
  const char* socket = std::getenv("OPLEDGER_FD");
  if (socket == nullptr) return 2;
  return opledger::fake::FakeEngine(opledger::fake::read_script(argv[0]), std::atoi(socket)).serve();
}
