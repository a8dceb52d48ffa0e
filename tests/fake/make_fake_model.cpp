// Writes the fake engine's model file, for tests that are no C++.
#include <cstdio>

#include "fake_model.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_fake_model FILE\n");
    return 2;
  }
  opledger::fake::write_model(argv[1], 2, 64, "llama");
  return 0;
}
