// f32 matrix products over packed operands (Goto and van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication", 2008): a and b are copied, a part at a time, into the order in which a block of c kept in registers reads
// them. So the layout of the operands costs little, whatever their strides do in the cache. On processors with AVX2 alone
// that is 1.1 to 2 times as fast as oneDNN's products (docs/performance.md).
#pragma once

#include <memory>

#include "plugins/backends/cpu/math/onednn_gemm.h"

namespace mulligan::cpu {

// Whether the product is f32 and large enough for the copies.
bool packs(const GemmShape& shape);

// c = alpha a b + beta c. An element is the sum of chains of 256 multiply-adds in order of k, whatever m, n and its place.
// With beta = 0 what c holds is not read.
std::unique_ptr<Gemm> make_packed_gemm(const GemmShape& shape);

}  // namespace mulligan::cpu
