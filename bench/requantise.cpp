// Writes a GGUF again in another type, by llama.cpp's own llama_model_quantize. For the bench program only.
// Usage: requantise IN.gguf OUT.gguf q8_0|q4_0|f32
#include <cstdio>
#include <cstring>

#include "llama.h"

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: requantise IN.gguf OUT.gguf q8_0|q4_0|f32\n");
    return 2;
  }
  llama_backend_init();
  llama_model_quantize_params parameters = llama_model_quantize_default_params();
  parameters.allow_requantize = true;
  parameters.ftype = LLAMA_FTYPE_ALL_F32;
  if (std::strcmp(argv[3], "q8_0") == 0) parameters.ftype = LLAMA_FTYPE_MOSTLY_Q8_0;
  if (std::strcmp(argv[3], "q4_0") == 0) parameters.ftype = LLAMA_FTYPE_MOSTLY_Q4_0;
  return static_cast<int>(llama_model_quantize(argv[1], argv[2], &parameters));
}
