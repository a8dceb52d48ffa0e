#include "engines/ggml/weights.h"

#include <algorithm>
#include <cstring>

namespace opledger::ggml {
namespace {

// Kernels may read a little past a weight's end in whole vectors; the engines pad their buffers too.
constexpr size_t kPaddingBytes = 4096;

std::string kind_of(const ggml_tensor* weight, const std::string& role) {
  std::string kind = role + '|' + std::to_string(weight->type);
  for (int64_t ne : weight->ne) kind += ',' + std::to_string(ne);
  // A weight in a repacked buffer has another layout: only one of the same buffer type can stand in.
  if (weight->buffer != nullptr) {
    kind += '|' + std::to_string(reinterpret_cast<uintptr_t>(ggml_backend_buffer_get_type(weight->buffer)));
  }
  return kind;
}

}  // namespace

void WeightBank::add(const GraphModel& model) {
  for (const Leaf& leaf : model.leaves) {
    if (leaf.kind != LeafKind::kWeight || position_.count(leaf.tensor) > 0) continue;
    const WeightRole role = role_of(leaf.tensor->name);
    const std::string kind = kind_of(leaf.tensor, role.role);
    auto& family = by_kind_[kind];
    const auto later = [&](const ggml_tensor* other) { return role_of(other->name).layer > role.layer; };
    family.insert(std::find_if(family.begin(), family.end(), later), leaf.tensor);
    position_[leaf.tensor] = {kind, 0};
    for (size_t i = 0; i < family.size(); ++i) position_[family[i]].second = i;
  }
}

const ggml_tensor* WeightBank::sibling_of(const ggml_tensor* weight, int shift) const {
  const auto known = position_.find(weight);
  if (known == position_.end() || role_of(weight->name).layer < 0) return nullptr;
  const auto& family = by_kind_.at(known->second.first);
  if (family.size() < 2) return nullptr;
  size_t other = (known->second.second + static_cast<size_t>(shift)) % family.size();
  if (other == known->second.second) other = (other + 1) % family.size();
  return family[other];
}

const ggml_tensor* WeightBank::shadow_of(const ggml_tensor* weight, int number, size_t limit_bytes) {
  const auto key = std::make_pair(weight, number);
  const auto known = shadows_.find(key);
  if (known != shadows_.end()) return known->second.tensor.get();
  const size_t bytes = ggml_nbytes(weight);
  if (weight->buffer == nullptr || shadow_bytes_ + bytes > limit_bytes) return nullptr;
  ggml_backend_buffer_t buffer =
      ggml_backend_buft_alloc_buffer(ggml_backend_buffer_get_type(weight->buffer), bytes + kPaddingBytes);
  if (buffer == nullptr) return nullptr;
  auto tensor = std::make_unique<ggml_tensor>(*weight);
  tensor->buffer = buffer;
  tensor->data = ggml_backend_buffer_get_base(buffer);
  // The raw bytes, in whatever layout the engine gave them; `extra` (its kernels) stays the same.
  std::memcpy(tensor->data, weight->data, bytes);
  shadow_bytes_ += bytes;
  return shadows_.emplace(key, Shadow{std::move(tensor), buffer}).first->second.tensor.get();
}

void WeightBank::drop_shadows() {
  for (auto& [key, shadow] : shadows_) ggml_backend_buffer_free(shadow.buffer);
  shadows_.clear();
  shadow_bytes_ = 0;
}

}  // namespace opledger::ggml
