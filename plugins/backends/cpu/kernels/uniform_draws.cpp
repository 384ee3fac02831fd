// uniform_draws:  values[i] = bound (2 u_i - 1) in f64, rounded to f32, with u_i = (the upper 53 of 64 bits)
// / 2^53 of Philox4x32-10 (Salmon et al., SC 2011) at counter (i, purpose) under the key (seed); key: seed
// and purpose, low word first. Every step but the last product and the rounding is exact, so every backend
// gives the same bits.
//
// Determinism: elements are independent.
#include "plugins/backends/common/shapes/uniform_draws.h"

#include "plugins/backends/cpu/kernels/row_math.h"

namespace mulligan::cpu {
namespace {

struct UniformDraws : shapes::UniformDraws {
  static void run(const Launch& launch);
};

std::uint64_t philox(std::uint64_t index, const std::uint32_t (&words)[4]) {
  std::uint32_t key[2] = {words[0], words[1]};
  std::uint32_t c[4] = {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), words[2],
                        words[3]};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * c[0], b = std::uint64_t{0xCD9E8D57} * c[2];
    const std::uint32_t next[4] = {
        static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ key[0], static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ key[1], static_cast<std::uint32_t>(a)};
    std::copy_n(next, 4, c);
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return std::uint64_t{c[1]} << 32 | c[0];
}

void UniformDraws::run(const Launch& launch) {
  const double bound = launch.attribute(UniformDraws::bound);
  const auto* key = launch.data<const std::int32_t>(UniformDraws::key);
  std::uint32_t words[4];
  for (int i = 0; i < 4; ++i) words[i] = static_cast<std::uint32_t>(key[i]);
  auto* values = launch.data<float>(UniformDraws::values);
  for_elements(launch, launch.size(UniformDraws::values), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::uint64_t bits = philox(static_cast<std::uint64_t>(i), words);
      const double uniform = static_cast<double>(bits >> 11) * 0x1.0p-53;
      values[i] = static_cast<float>(bound * (2.0 * uniform - 1.0));
    }
  });
}

const Register registered = sdk::cpu_kernel<UniformDraws>();

}  // namespace
}  // namespace mulligan::cpu
