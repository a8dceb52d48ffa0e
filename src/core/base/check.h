// For our own bugs only: a condition that user input can never make false. Prints the expression and its
// place, and aborts, in release builds too.
#pragma once

#include <cstdio>
#include <cstdlib>

#define OPLEDGER_CHECK(expression)                                                                        \
  do {                                                                                                    \
    if (!(expression)) {                                                                                  \
      std::fprintf(stderr, "opledger: bug: %s does not hold (%s:%d)\n", #expression, __FILE__, __LINE__); \
      std::abort();                                                                                       \
    }                                                                                                     \
  } while (false)
