#include "engines/ggml/engine.h"

#include <cstdio>
#include <cstring>
#include <sys/stat.h>

#include "engines/ggml/backend_hook.h"
#include "engines/ggml/flags.h"

namespace opledger::ggml {
namespace {

size_t partial_state_size(llama_context* context) {
#if OPLEDGER_HAVE_STATE_EXT
  return llama_state_seq_get_size_ext(context, 0, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY);
#elif OPLEDGER_HAVE_STATE_FLAGS
  return llama_state_seq_get_size(context, 0, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY);
#else
  return llama_state_seq_get_size(context, 0);
#endif
}

size_t copy_partial_state(llama_context* context, std::vector<uint8_t>& state) {
#if OPLEDGER_HAVE_STATE_EXT
  return llama_state_seq_get_data_ext(context, state.data(), state.size(), 0,
                                      LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY);
#elif OPLEDGER_HAVE_STATE_FLAGS
  return llama_state_seq_get_data(context, state.data(), state.size(), 0, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY);
#else
  return llama_state_seq_get_data(context, state.data(), state.size(), 0);
#endif
}

size_t set_partial_state(llama_context* context, const std::vector<uint8_t>& state) {
#if OPLEDGER_HAVE_STATE_EXT
  return llama_state_seq_set_data_ext(context, state.data(), state.size(), 0,
                                      LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY);
#elif OPLEDGER_HAVE_STATE_FLAGS
  return llama_state_seq_set_data(context, state.data(), state.size(), 0, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY);
#else
  return llama_state_seq_set_data(context, state.data(), state.size(), 0);
#endif
}

bool remove_positions_from(llama_context* context, int position) {
#if OPLEDGER_HAVE_MEMORY
  return llama_memory_seq_rm(llama_get_memory(context), 0, position, -1);
#else
  return llama_kv_cache_seq_rm(context, 0, position, -1);
#endif
}

EngineParameters parameters_of(const LoadRequest& request) {
  EngineParameters p{llama_model_default_params(), llama_context_default_params()};
  p.model.n_gpu_layers = 0;
  p.context.n_ctx = static_cast<uint32_t>(request.context_tokens);
  p.context.n_batch = static_cast<uint32_t>(request.batch_tokens);
  p.context.n_ubatch = static_cast<uint32_t>(request.ubatch_tokens);
  p.context.n_threads = request.threads;
  p.context.n_threads_batch = request.threads;
#if OPLEDGER_HAVE_NO_PERF
  p.context.no_perf = true;
#endif
  return p;
}

}  // namespace

std::set<std::string> tensor_names_of(const std::string& model_path) {
  std::set<std::string> names;
  gguf_context* file = gguf_init_from_file(model_path.c_str(), {/*no_alloc=*/true, /*ctx=*/nullptr});
  if (file == nullptr) return names;
  const auto count = gguf_get_n_tensors(file);
  for (auto i = decltype(count){0}; i < count; ++i) names.insert(gguf_get_tensor_name(file, i));
  gguf_free(file);
  return names;
}

Result<std::unique_ptr<Engine>> Engine::load(const LoadRequest& request) {
  struct stat info {};
  if (stat(request.model_path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return Error::bad_input(request.model_path + ": no such model file; give -m a GGUF file");
  }
  EngineParameters parameters = parameters_of(request);
  std::unique_ptr<Engine> engine(new Engine());
  if (Status status = apply_flags(request.flags, parameters, engine->flags_); !status) return status.error();
  engine->weight_names_ = tensor_names_of(request.model_path);
  engine->model_ = llama_model_load_from_file(request.model_path.c_str(), parameters.model);
  if (engine->model_ == nullptr) {
    return Error::bad_input(request.model_path + ": this engine cannot load it (its log says why)");
  }
  engine->context_ = llama_init_from_model(engine->model_, parameters.context);
  if (engine->context_ == nullptr) {
    return Error::environment(request.model_path + ": the engine could not make a context of " +
                              std::to_string(request.context_tokens) +
                              " tokens; try a smaller -p, -n or -d, or other flags");
  }
  if (const std::string name = non_cpu_backend(); !name.empty()) {
    return Error::bad_input("the engine uses backend " + name +
                            ", which is not validated yet: only CPU is; build the engine without it");
  }
  engine->batch_tokens_ = request.batch_tokens;
  engine->batch_ = llama_batch_init(request.batch_tokens, 0, 1);
  return engine;
}

Engine::~Engine() {
  if (batch_tokens_ > 0) llama_batch_free(batch_);
  if (context_ != nullptr) llama_free(context_);
#if OPLEDGER_HAVE_MODEL_FREE
  if (model_ != nullptr) llama_model_free(model_);
#else
  if (model_ != nullptr) llama_free_model(model_);
#endif
}

int Engine::vocab_tokens() const {
#if OPLEDGER_HAVE_VOCAB
  return llama_vocab_n_tokens(llama_model_get_vocab(model_));
#else
  return llama_n_vocab(model_);
#endif
}

int Engine::context_tokens() const {
  return static_cast<int>(llama_n_ctx(context_));
}

int Engine::layers() const {
  char text[32];
  const std::string key = architecture() + ".block_count";
  return llama_model_meta_val_str(model_, key.c_str(), text, sizeof text) > 0 ? std::atoi(text) : -1;
}

std::string Engine::architecture() const {
  char text[128];
  return llama_model_meta_val_str(model_, "general.architecture", text, sizeof text) > 0 ? text : "";
}

std::vector<llama_token> Engine::tokenize(const std::string& text) const {
  std::vector<llama_token> tokens(text.size() + 8);
  const auto length = static_cast<int32_t>(text.size());
  const auto room = static_cast<int32_t>(tokens.size());
#if OPLEDGER_HAVE_TOKENIZE_VOCAB
  const int count =
      llama_tokenize(llama_model_get_vocab(model_), text.c_str(), length, tokens.data(), room, true, false);
#else
  const int count = llama_tokenize(model_, text.c_str(), length, tokens.data(), room, true, false);
#endif
  tokens.resize(count > 0 ? static_cast<size_t>(count) : 0);
  return tokens;
}

void Engine::clear() {
#if OPLEDGER_HAVE_MEMORY
  llama_memory_clear(llama_get_memory(context_), false);
#else
  llama_kv_cache_clear(context_);
#endif
}

Status Engine::decode(std::span<const llama_token> tokens, int position, int output_rows) {
  if (static_cast<int>(tokens.size()) > batch_tokens_) {
    return Error::bad_input("a batch of " + std::to_string(tokens.size()) + " tokens exceeds batch_tokens " +
                            std::to_string(batch_tokens_));
  }
  const int n = static_cast<int>(tokens.size());
  batch_.n_tokens = n;
  for (int i = 0; i < n; ++i) {
    batch_.token[i] = tokens[static_cast<size_t>(i)];
    batch_.pos[i] = position + i;
    batch_.n_seq_id[i] = 1;
    batch_.seq_id[i][0] = 0;
    batch_.logits[i] = i >= n - output_rows ? 1 : 0;
  }
  last_tokens_ = n;
  last_output_rows_ = output_rows;
  const int status = llama_decode(context_, batch_);
  llama_synchronize(context_);
  if (status == 0) return {};
  return Error::failure("the engine's decode returned " + std::to_string(status) + " for " +
                        std::to_string(n) + " tokens at position " + std::to_string(position));
}

const float* Engine::logits(int row) const {
  return llama_get_logits_ith(context_, last_tokens_ - last_output_rows_ + row);
}

Result<Checkpoint> Engine::checkpoint(int positions, bool has_recurrent_state) const {
  Checkpoint made{positions, {}};
  if (!has_recurrent_state) return made;
  made.recurrent_state.resize(partial_state_size(context_));
  if (copy_partial_state(context_, made.recurrent_state) == 0) {
    return Error::failure("the engine did not give its recurrent state");
  }
  return made;
}

Status Engine::restore(const Checkpoint& checkpoint) {
  const bool is_recurrent = !checkpoint.recurrent_state.empty();
  if (is_recurrent && set_partial_state(context_, checkpoint.recurrent_state) == 0) {
    return Error::failure("the engine did not take its recurrent state back");
  }
  // With a recurrent state some trees answer false and remove the attention cells all the same; that the work
  // is the same again is seen by the digests, not by this answer.
  const bool removed = remove_positions_from(context_, checkpoint.positions);
  if (!removed && !is_recurrent) {
    return Error::failure("the engine could not remove positions from " +
                          std::to_string(checkpoint.positions));
  }
  return {};
}

}  // namespace opledger::ggml
