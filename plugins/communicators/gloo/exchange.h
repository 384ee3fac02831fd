// Carries out a plan over the connections of a mesh.
#pragma once

#include <cstdint>
#include <span>

#include "plugins/communicators/gloo/exchange_plan.h"
#include "plugins/communicators/gloo/mesh.h"

namespace mulligan::gloo_ranks {

// Returns when all of it is done on this rank and its memory is free. `mesh` may be null for a world of one.
// Throws std::runtime_error; then the mesh is of no use any more.
void exchange(const Plan& plan, Mesh* mesh, int rank, int size);

// to[i] = parts[0][i] + parts[1][i] + ... for `count` elements of `dtype` (f32, f64, bf16). f32 and f64 are
// added in their own precision, bf16 in f32 and rounded once, to nearest even. `to` may be one of the parts.
void sum_parts(std::int32_t dtype, std::span<const void* const> parts, void* to, std::int64_t count);

}  // namespace mulligan::gloo_ranks
