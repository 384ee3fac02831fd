// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2,
// 3", SC 2011).
//
// Every number is a pure function of (seed, purpose, index): independent of threads, ranks and the order
// of the draws.
#pragma once

#include <mulligan/philox.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace mulligan {

// One independent stream of numbers, named by its purpose ("init/qo_bank", "shuffle", ...).
class PhiloxStream {
 public:
  PhiloxStream(std::uint64_t seed, std::string_view purpose);
  // What names the stream, for kernels that draw from it: seed and purpose, 64 bits each, the low word first.
  std::array<std::int32_t, 4> key() const;
  // Number `index` of the stream.
  std::uint32_t bits(std::uint64_t index) const;
  // Uniform in [0, 1), 53 bits.
  double uniform(std::uint64_t index) const;
  // Standard normal (Box-Muller), double precision.
  double normal(std::uint64_t index) const;
  // out[i] = standard_deviation * normal(first + i).
  void fill_normal(std::span<float> out, double standard_deviation, std::uint64_t first = 0) const;

 private:
  sdk::PhiloxKey key_;
};

}  // namespace mulligan
