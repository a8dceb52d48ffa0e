// Turns rows of floats into the formats that skeletons are written in. Simple and exact to each format's
// definition; does not search for better scales as an engine's own quantizer does, because skeletons carry
// random weights and only their layout and their statistics matter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gguf/types.h"

namespace opledger::gguf {

/// True for f32, f16, q4_0, q8_0, q4_K and q6_K.
bool can_quantize(const TensorType& type);

/// Writes one row. `type` must be one that can_quantize accepts, the row a whole number of blocks, and `out`
/// exactly as large as the row becomes: anything else is our bug and aborts. Values must be finite.
void quantize_row(const TensorType& type, std::span<const float> row, std::span<std::byte> out);

/// IEEE 754 binary16, rounded to nearest even; too large becomes infinity.
uint16_t half_from_float(float value);
/// The exact value of a binary16.
float float_from_half(uint16_t half);

}  // namespace opledger::gguf
