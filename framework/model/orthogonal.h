// Orthonormal rows, for initial weights.
#pragma once

#include <cstddef>
#include <span>

namespace mulligan {

// Makes the rows of `vectors` ([count, length] with count <= length, row after row) orthonormal in place. It applies modified
// Gram-Schmidt twice ("twice is enough", Giraud et al., "The loss of orthogonality in the Gram-Schmidt orthogonalization
// process", 2005), each row against those before it in their order. For rows of independent normal numbers the result is
// Haar distributed, like that of a QR factorisation with a positive diagonal.
//
// The bits depend only on the values: sums run over eight lanes, one for each index modulo 8 as long as there are eight left,
// and multiplications are rounded.
void make_orthonormal(std::span<double> vectors, std::size_t count, std::size_t length);

}  // namespace mulligan
