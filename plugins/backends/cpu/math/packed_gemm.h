// Matmuls over packed operands (Goto and van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication", 2008): a and b are copied, a part at a time, into the order in which a block of c kept in registers reads
// them. So the layout of the operands costs little, whatever their strides do in the cache, and blocks beyond a diagonal are
// left out. On CPUs with AVX2 alone f32 matmuls are 1.1 to 2 times as fast as oneDNN's; with AVX-512 those of which
// half is left out (docs/performance.md).
#pragma once

#include <memory>

#include "plugins/backends/cpu/math/onednn_gemm.h"

namespace mulligan::cpu {

// Whether the matmul is large enough for the copies, and of types that this build multiplies so: f32, or bf16 with an
// even k.
bool packs(const GemmShape& shape);

// c = alpha a b + beta c, of a shape whose types packs() names. An element is the sum of chains of 256 multiply-adds (of
// bf16: of 256 sums of two products) in order of k, for any m, n and place; a bf16 result is rounded once. With beta = 0
// what c holds is not read.
std::unique_ptr<Gemm> make_packed_gemm(const GemmShape& shape);

}  // namespace mulligan::cpu
