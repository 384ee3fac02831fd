// Elements of a matmul computed in fp64 on the host, where the whole matmul would cost too much.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/first_contact/agreement.h"

namespace mulligan::first_contact {

// c = alpha op(a) op(b) + beta term, as matmul and matmul_add of docs/kernels.md; c is what was computed, `term` is
// read where beta is not 0.
struct MatmulTensors {
  HostTensor a, b, term, c;
  bool transpose_a = false, transpose_b = false;
  double alpha = 1, beta = 0;
};

// Up to `most` different numbers below `count`, rising: the first, the last, and others in between, drawn.
std::vector<std::int64_t> some_of(std::int64_t count, std::int64_t most, std::uint64_t seed);

// The elements where 24 rows and 24 columns cross, of the first and the last pair of the batch.
Agreement sampled_matmul(const MatmulTensors& matmul);

}  // namespace mulligan::first_contact
