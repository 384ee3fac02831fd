// One-threaded oneDNN matmuls on strided tiles. Only this header's implementation includes oneDNN,
// whose interfaces differ between 2.x (Debian 12) and 3.x (Ubuntu 24.04).
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

namespace mulligan::cpu {

struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t a_row = 0, a_column = 0;  // strides of a[m, k] in elements; one of them is 1
  std::int64_t b_row = 0, b_column = 0;  // strides of b[k, n]
  std::int64_t c_row = 0;                // c[m, n] is row-major with this stride
  bool ab_bf16 = false;
  bool c_bf16 = false;
  float alpha = 1.0f, beta = 0.0f;
  // Only c[i, j] with j <= i + diagonal is wanted; what is left beyond is either c as it was or c as it would be.
  std::int64_t diagonal = std::numeric_limits<std::int64_t>::max() / 2;
  auto operator<=>(const GemmShape&) const = default;
};

// c = alpha a b + beta c, accumulated in f32. run() of one object may execute at once in several threads as
// long as each gives its own slot and scratch memory.
class Gemm {
 public:
  virtual ~Gemm() = default;
  // Bytes of scratch memory for one slot, 64-byte aligned.
  virtual std::size_t scratch_bytes() const = 0;
  // False when an f32 matmul of converted operands is faster here: oneDNN has no vectorised implementation
  // for these types, or the CPU's bf16 instructions do not pay (bf16_matmuls_pay). Callers convert.
  virtual bool fast() const = 0;
  // False when oneDNN reports an error (it does not for a matmul it has prepared). Does not throw.
  virtual bool run(int slot, const void* a, const void* b, void* c, void* scratch) noexcept = 0;
};

// Whether bf16 matmuls are faster than f32 ones on this CPU, as far as oneDNN may use what it has
// (ONEDNN_MAX_CPU_ISA). A function of the instruction sets alone, never of a measurement: results must not
// depend on what else the machine did.
bool bf16_matmuls_pay();

// Whether make_gemm() makes a matmul over packed operands (packed_gemm.h), which omits what is beyond the diagonal: where
// that is faster than oneDNN's. Like bf16_matmuls_pay() a function of the instruction sets, and of the shape.
bool takes_packed_operands(const GemmShape& shape);

// A matmul of oneDNN, or one over packed operands. Null when oneDNN has no
// implementation at all for this combination. `slots`: threads that may run it at once.
std::unique_ptr<Gemm> make_gemm(const GemmShape& shape, int slots);

}  // namespace mulligan::cpu
