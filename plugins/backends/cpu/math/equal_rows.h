// Whether a tile of fixed height holds what batch-invariance needs of oneDNN: that the place of a row in the
// tile does not decide how it is summed.
#pragma once

#include "plugins/backends/cpu/math/onednn_gemm.h"

namespace mulligan::cpu {

// Multiplies a tile whose rows are all the same random numbers: the rows of the result must have the same bits.
// Looks once per shape and process. Throws std::runtime_error where they have not, or where oneDNN fails. `gemm`
// was made of `shape`, whose a is not transposed; its slot 0 must be free.
void require_equal_rows(Gemm& gemm, const GemmShape& shape);

}  // namespace mulligan::cpu
