// Carries out a plan over the connections of a mesh.
#pragma once

#include "plugins/communicators/gloo/exchange_plan.h"
#include "plugins/communicators/gloo/mesh.h"

namespace mulligan::gloo_ranks {

// Returns when all of it is done on this rank and its memory is free. `mesh` may be null for a world of one.
// Throws std::runtime_error; then the mesh is of no use any more.
void exchange(const Plan& plan, Mesh* mesh, int rank, int size);

}  // namespace mulligan::gloo_ranks
