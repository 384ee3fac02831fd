// Sums over ranks, element by element, always in rank order: every rank that adds the same values gets the
// same bits.
#pragma once

#include <cstdint>
#include <span>

namespace mulligan::gloo_ranks {

// to[i] = parts[0][i] + parts[1][i] + ... for `count` elements of `dtype` (f32, f64, bf16). f32 and f64 are
// added in their own precision, bf16 in f32 and rounded once, to nearest even. `to` may be one of the parts.
// Throws std::runtime_error for another dtype.
void sum_parts(std::int32_t dtype, std::span<const void* const> parts, void* to, std::int64_t count);

}  // namespace mulligan::gloo_ranks
