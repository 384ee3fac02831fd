// uniform_draws:  values[i] = bound (2 u_i - 1) in f64, rounded to f32, with u_i = (the upper 53 of 64 bits)
// / 2^53 of Philox4x32-10 (Salmon et al., SC 2011) at counter (i, purpose) under the key (seed); key: seed
// and purpose, low word first. Every step but the last multiplication and the rounding is exact, so every backend
// gives the same bits.
//
// Determinism: elements are independent.
#include "kernels/uniform_draws/signature.h"

#include <mulligan/philox.hpp>

#include "plugins/backends/cpu/math/row_math.h"

namespace mulligan::cpu::uniform_draws {
namespace {

struct UniformDraws : shapes::UniformDraws {
  static void run(const Launch& launch) {
    const double bound = launch.attribute(UniformDraws::bound);
    const sdk::PhiloxKey stream(launch.data<const std::int32_t>(UniformDraws::key));
    auto* values = launch.data<float>(UniformDraws::values);
    for_elements(launch, launch.size(UniformDraws::values), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const auto words = stream.block(static_cast<std::uint64_t>(i));
        const std::uint64_t bits = std::uint64_t{words[1]} << 32 | words[0];
        const double uniform = static_cast<double>(bits >> 11) * 0x1.0p-53;
        values[i] = static_cast<float>(bound * (2.0 * uniform - 1.0));
      }
    });
  }
};

const Register registered = sdk::cpu_kernel<UniformDraws>();

}  // namespace
}  // namespace mulligan::cpu::uniform_draws
