#include "plugins/backends/cpu/math/equal_rows.h"

#include <mulligan/kernel.hpp>

#include <cstring>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace mulligan::cpu {
namespace {

// `count` random numbers between -1 and 1, stored in f32 or bf16.
std::vector<std::byte> random_numbers(std::int64_t count, bool bf16, std::uint32_t seed) {
  std::minstd_rand random(seed);
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * (bf16 ? 2 : 4));
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = static_cast<float>(random()) * 0x1p-30f - 1.0f;
    const sdk::bfloat16 half(value);
    std::memcpy(bytes.data() + i * (bf16 ? 2 : 4), bf16 ? static_cast<const void*>(&half) : &value,
                bf16 ? 2 : 4);
  }
  return bytes;
}

void repeat_first_row(std::vector<std::byte>& rows, std::int64_t row_bytes) {
  for (std::size_t at = static_cast<std::size_t>(row_bytes); at < rows.size(); at += row_bytes)
    std::memcpy(rows.data() + at, rows.data(), static_cast<std::size_t>(row_bytes));
}

bool rows_are_equal(Gemm& gemm, const GemmShape& s) {
  std::vector<std::byte> a = random_numbers(s.m * s.k, s.ab_bf16, 1);
  repeat_first_row(a, s.k * (s.ab_bf16 ? 2 : 4));
  const std::vector<std::byte> b =
      random_numbers(s.b_row == 1 ? s.b_column * s.n : s.b_row * s.k, s.ab_bf16, 2);
  std::vector<std::byte> c = random_numbers(s.m * s.c_row, s.c_bf16, 3);
  const std::int64_t row = s.c_row * (s.c_bf16 ? 2 : 4);
  repeat_first_row(c, row);
  std::vector<std::byte> scratch(gemm.scratch_bytes() + 64);
  const auto misaligned = reinterpret_cast<std::uintptr_t>(scratch.data()) % 64;
  if (!gemm.run(0, a.data(), b.data(), c.data(), scratch.data() + (64 - misaligned) % 64))
    throw std::runtime_error("oneDNN refused to run a matmul that it had prepared; it may lack memory");
  for (std::int64_t i = 1; i < s.m; ++i) {
    if (std::memcmp(c.data() + i * row, c.data(), static_cast<std::size_t>(s.n * (s.c_bf16 ? 2 : 4))) != 0)
      return false;
  }
  return true;
}

}  // namespace

void require_equal_rows(Gemm& gemm, const GemmShape& s) {
  static std::mutex mutex;
  static std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool, bool,
                             float, float>>
      equal;
  const auto key =
      std::make_tuple(s.n, s.k, s.b_row, s.b_column, s.c_row, s.ab_bf16, s.c_bf16, s.alpha, s.beta);
  const std::lock_guard lock(mutex);
  if (equal.contains(key)) return;
  if (!rows_are_equal(gemm, s)) {
    throw std::runtime_error("kernel matmul: oneDNN sums equal rows of a matmul of " + std::to_string(s.m) +
                             " x " + std::to_string(s.k) + " by " + std::to_string(s.k) + " x " +
                             std::to_string(s.n) +
                             " in different orders on this CPU, so backend.batch_invariant cannot be "
                             "kept; set run.determinism = \"run\"");
  }
  equal.insert(key);
}

}  // namespace mulligan::cpu
