// The ggml adapter: drives a llama.cpp-family engine for opledger. Started by the core only.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <sys/prctl.h>

#include "engines/ggml/backend_hook.h"
#include "engines/ggml/channel.h"
#include "engines/ggml/service.h"

int main() {
  // The core may be killed without a chance to say goodbye; no engine may stay behind.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const char* descriptor = std::getenv("OPLEDGER_FD");
  if (descriptor == nullptr) {
    std::fprintf(
        stderr, "opledger-ggml is started by opledger (OPLEDGER_FD is not set); run: opledger engine list\n");
    return 2;
  }
  try {
    opledger::ggml::install_backend_hook();
    llama_backend_init();
    opledger::ggml::Channel channel(std::atoi(descriptor));
    return opledger::ggml::Service(channel).serve();
  } catch (const std::exception& error) {
    // Requests answer for their own failures; what is left (no memory for an answer) goes to the engine's
    // log.
    std::fprintf(stderr, "opledger-ggml: %s\n", error.what());
    return 3;
  }
}
