// The weights that a copy may read instead of its original's: the same role in another layer (a sibling), or
// a private copy (a shadow), so that the copy finds them as far away as the original did.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engines/ggml/graph_model.h"

namespace opledger::ggml {

class WeightBank {
 public:
  /// Adds the weights that a described graph reads. Known ones are skipped.
  void add(const GraphModel& model);

  /// The weight `shift` layers on, of the same role, type, shape and buffer type (wrapping round); nullptr
  /// when there is no other.
  [[nodiscard]] const ggml_tensor* sibling_of(const ggml_tensor* weight, int shift) const;

  /// A private copy, made on first use: the `number`-th for this weight. nullptr when `limit_bytes` of
  /// shadows in total would be passed, or memory is short.
  const ggml_tensor* shadow_of(const ggml_tensor* weight, int number, size_t limit_bytes);

  [[nodiscard]] bool knows(const ggml_tensor* weight) const { return position_.count(weight) > 0; }
  [[nodiscard]] size_t shadow_bytes() const { return shadow_bytes_; }
  void drop_shadows();
  ~WeightBank() { drop_shadows(); }

 private:
  struct Shadow {
    std::unique_ptr<ggml_tensor> tensor;
    ggml_backend_buffer_t buffer;
  };
  std::map<std::string, std::vector<const ggml_tensor*>> by_kind_;  ///< layer order
  std::map<const ggml_tensor*, std::pair<std::string, size_t>> position_;
  std::map<std::pair<const ggml_tensor*, int>, Shadow> shadows_;
  size_t shadow_bytes_ = 0;
};

}  // namespace opledger::ggml
