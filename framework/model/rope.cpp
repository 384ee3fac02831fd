#include "framework/model/rope.h"

#include <cmath>
#include <mulligan/kernel.hpp>

namespace mulligan {

RopeTables rope_tables(const RopeConfig& rope, std::int64_t positions, DType compute_dtype) {
  const std::int64_t half = rope.dims / 2;
  const bool rounded_frequencies = rope.table == RopeTable::bf16;
  const bool rounded_tables = rounded_frequencies && compute_dtype == MLG_BF16;
  const auto round_if = [](bool rounded, float value) {
    return rounded ? static_cast<float>(sdk::bfloat16(value)) : value;
  };
  RopeTables tables;
  tables.cos.resize(static_cast<std::size_t>(positions * half));
  tables.sin.resize(tables.cos.size());
  for (std::int64_t pair = 0; pair < half; ++pair) {
    // The reference divides 1 by a float32 power.
    const float exponent = static_cast<float>(2 * pair) / static_cast<float>(rope.dims);
    const float frequency =
        round_if(rounded_frequencies, 1.0F / std::pow(static_cast<float>(rope.base), exponent));
    for (std::int64_t position = 0; position < positions; ++position) {
      const float angle = static_cast<float>(position) * frequency;
      const auto index = static_cast<std::size_t>(position * half + pair);
      tables.cos[index] = round_if(rounded_tables, std::cos(angle));
      tables.sin[index] = round_if(rounded_tables, std::sin(angle));
    }
  }
  return tables;
}

}  // namespace mulligan
