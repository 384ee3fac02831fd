// Matmuls over packed operands (Goto and van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication", 2008). Parts of a and b are copied into the order in which a block of c in registers reads them. So the
// strides of the operands cost little, and blocks beyond a diagonal are left out. On CPUs with AVX2 alone, f32 matmuls are
// 1.1 to 2 times as fast as oneDNN's. With AVX-512 this holds if half of the result is left out (docs/performance.md).
#pragma once

#include <memory>

#include "plugins/backends/cpu/math/onednn_gemm.h"

namespace mulligan::cpu {

// Whether this build multiplies the types so: f32; bf16 widened to f32 in the copies if bf16_matmuls_pay() is false; otherwise
// bf16 with an even k. Matmuls whose operands are not widened must be large enough for the copies.
bool packs(const GemmShape& shape);

// c = alpha a b + beta c, of a shape whose types packs() names. An element is the sum, in order of k, of chains of 256
// multiply-adds (bf16 that is not widened: of 256 sums of two terms), for any m, n and place. A bf16 result is rounded once. With beta = 0
// the old c is not read.
std::unique_ptr<Gemm> make_packed_gemm(const GemmShape& shape);

}  // namespace mulligan::cpu
