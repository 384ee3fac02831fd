// Python's random.Random, as far as the reference's document sampling needs it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace mulligan {

// MT19937 seeded through init_by_array with the seed's 32-bit digits (Matsumoto and Nishimura 2002; CPython
// seeds integers that way). std::mt19937 has the same recurrence but cannot be seeded like that.
class PythonRandom {
 public:
  explicit PythonRandom(std::uint64_t seed);
  // random.sample(range(population), count), in Python's order; 0 <= count <= population.
  std::vector<int> sample(int population, int count);

 private:
  static constexpr std::size_t kStateWords = 624;
  std::uint32_t next_word();
  // Uniform in 0..bound-1 by rejection on bound's bit length.
  std::uint32_t below(std::uint32_t bound);

  std::array<std::uint32_t, kStateWords> state_{};
  std::size_t next_ = kStateWords;
};

}  // namespace mulligan
