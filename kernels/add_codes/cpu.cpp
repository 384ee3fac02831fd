// add_codes:  values[i] = f32(fma(step, q_i - zero, values[i])) in f64, with grid = {step, zero} and q_i the
// code of `bits` bits (2 to 8) that begins at bit i * bits of `codes`, least significant bits first.
// Quantised differences of weights are added to the weights that they are of (docs/numerics/task_vectors.md).
//
// Determinism: elements are independent, and one fused operation leaves nothing to contract, so every backend
// gives the same bits.
#include "kernels/add_codes/signature.h"

#include <cmath>

#include "plugins/backends/cpu/math/row_math.h"

namespace mulligan::cpu::add_codes {
namespace {

struct AddCodes : shapes::AddCodes {
  static void run(const Launch& launch) {
    const auto width = static_cast<std::int64_t>(launch.attribute(bits));
    const unsigned mask = (1U << width) - 1;
    const auto* packed = launch.data<const std::uint8_t>(codes);
    const auto* scalars = launch.data<const double>(grid);
    const double step = scalars[0], zero = scalars[1];
    auto* out = launch.data<float>(values);
    for_elements(launch, launch.size(values), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t bit = i * width, shift = bit & 7;
        unsigned word = packed[bit >> 3];
        if (shift + width > 8) word |= static_cast<unsigned>(packed[(bit >> 3) + 1]) << 8;
        const double code = static_cast<double>(word >> shift & mask);
        out[i] = static_cast<float>(std::fma(step, code - zero, static_cast<double>(out[i])));
      }
    });
  }
};

const Register registered = sdk::cpu_kernel<AddCodes>();

}  // namespace
}  // namespace mulligan::cpu::add_codes
