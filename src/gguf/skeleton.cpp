// Draws and writes the weights. Drawing a gigabyte of normal numbers takes minutes; so a block of rows is
// drawn and quantized once and repeated, each time with the pieces of every row in another order: the rows
// differ, their statistics do not, and an engine's work depends on neither.
#include "gguf/skeleton.h"

#include <algorithm>
#include <numeric>

#include "gguf/quantize.h"
#include "gguf/random.h"

namespace opledger::gguf {
namespace {

// A prime, so that repeated blocks do not line up with experts, whose row counts are powers of two or close.
constexpr size_t kDrawnRows = 509;
// Pieces are whole quantization blocks, and never so small that moving them costs more than drawing.
constexpr size_t kMinPieceWeights = 32;

// The direction (1, 1, ..., 1) carries the popularity of experts from the embeddings to the routers, because
// it alone survives the reordering of pieces. An embedding's part along it is the same for every token, a
// router row's is its expert's bias, and whatever else reads the stream is blind to it.
float mean_of_row(const Fill& fill, size_t row, float width) {
  if (fill.kind == Fill::Kind::kEmbedding) return fill.scale * fill.mean;
  if (fill.kind == Fill::Kind::kRouter && !fill.biases.empty()) return fill.biases[row] / width / fill.mean;
  return 0;
}

void draw_row(const Fill& fill, size_t row, detail::Random& random, std::span<float> out) {
  switch (fill.kind) {
    case Fill::Kind::kOnes:
      std::fill(out.begin(), out.end(), 1.0F);
      return;
    case Fill::Kind::kUniform:
      for (float& x : out) x = fill.low + (fill.high - fill.low) * static_cast<float>(random.uniform());
      return;
    case Fill::Kind::kGaussian:
    case Fill::Kind::kCentred:
    case Fill::Kind::kEmbedding:
    case Fill::Kind::kRouter:
      break;
  }
  for (float& x : out) x = fill.scale * static_cast<float>(random.gaussian());
  if (fill.kind == Fill::Kind::kGaussian) return;
  const auto width = static_cast<float>(out.size());
  const float drawn = std::accumulate(out.begin(), out.end(), 0.0F) / width;
  const float wanted = mean_of_row(fill, row, width);
  for (float& x : out) x += wanted - drawn;
}

class TensorWriter {
 public:
  TensorWriter(const TensorSpec& tensor, const Fill& fill, uint64_t seed)
      : type_(*tensor.type),
        fill_(fill),
        random_(seed, tensor.name),
        width_(static_cast<size_t>(tensor.ne[0])) {
    rows_ = std::accumulate(tensor.ne.begin() + 1, tensor.ne.end(), size_t{1},
                            [](size_t product, int64_t n) { return product * static_cast<size_t>(n); });
    row_bytes_ = width_ / type_.block_weights * type_.block_bytes;
    const size_t piece_weights = std::max<size_t>(type_.block_weights, kMinPieceWeights);
    pieces_ = width_ % piece_weights == 0 ? width_ / piece_weights : 1;
  }

  Status write(const Sink& sink) {
    // A router is small and every row of it counts.
    const size_t drawn = fill_.kind == Fill::Kind::kRouter ? rows_ : std::min(rows_, kDrawnRows);
    const std::vector<std::byte> block = draw(drawn);
    if (Status s = sink(block); !s) return s;
    for (size_t done = drawn; done < rows_;) {
      const size_t rows = std::min(drawn, rows_ - done);
      if (Status s = sink(reordered(std::span(block).first(rows * row_bytes_))); !s) return s;
      done += rows;
    }
    return {};
  }

 private:
  std::vector<std::byte> draw(size_t rows) {
    std::vector<std::byte> block(rows * row_bytes_);
    std::vector<float> row(width_);
    for (size_t r = 0; r < rows; ++r) {
      draw_row(fill_, r, random_, row);
      quantize_row(type_, row, std::span(block).subspan(r * row_bytes_, row_bytes_));
    }
    return block;
  }

  std::vector<std::byte> reordered(std::span<const std::byte> block) {
    std::vector<size_t> order(pieces_);
    std::iota(order.begin(), order.end(), size_t{0});
    for (size_t i = pieces_ - 1; i > 0; --i) std::swap(order[i], order[random_.below(i + 1)]);
    const size_t piece = row_bytes_ / pieces_;
    std::vector<std::byte> out(block.size());
    for (size_t row = 0; row < block.size(); row += row_bytes_) {
      for (size_t p = 0; p < pieces_; ++p) {
        const auto from = block.subspan(row + order[p] * piece, piece);
        std::copy(from.begin(), from.end(), out.begin() + static_cast<long>(row + p * piece));
      }
    }
    return out;
  }

  const TensorType& type_;
  const Fill& fill_;
  detail::Random random_;
  size_t width_;
  size_t rows_ = 1;
  size_t row_bytes_ = 0;
  size_t pieces_ = 1;
};

}  // namespace

Status write_skeleton(const SkeletonPlan& plan, const std::filesystem::path& path) {
  return write_gguf(plan.layout, path, [&](size_t index, const Sink& sink) {
    return TensorWriter(plan.layout.tensors[index], plan.fills[index], plan.seed).write(sink);
  });
}

Status write_skeleton(const SkeletonSpec& spec, const std::filesystem::path& path) {
  const Result<SkeletonPlan> plan = plan_skeleton(spec);
  if (!plan) return plan.error();
  return write_skeleton(*plan, path);
}

}  // namespace opledger::gguf
