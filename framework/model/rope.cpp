#include "framework/model/rope.h"

#include <cmath>
#include <mulligan/kernel.hpp>

namespace mulligan {

RopeTables rope_tables(const RopeConfig& rope, std::int64_t positions) {
  const std::int64_t half = rope.dims / 2;
  const bool rounded = rope.table == RopeTable::bf16;
  const auto store = [&](float value) { return rounded ? static_cast<float>(sdk::bfloat16(value)) : value; };
  RopeTables tables;
  tables.cos.resize(static_cast<std::size_t>(positions * half));
  tables.sin.resize(tables.cos.size());
  for (std::int64_t pair = 0; pair < half; ++pair) {
    // The reference divides 1 by a float32 power.
    const float exponent = static_cast<float>(2 * pair) / static_cast<float>(rope.dims);
    const float frequency = store(1.0F / static_cast<float>(std::pow(rope.base, exponent)));
    for (std::int64_t position = 0; position < positions; ++position) {
      const float angle = static_cast<float>(position) * frequency;
      const auto index = static_cast<std::size_t>(position * half + pair);
      tables.cos[index] = store(std::cos(angle));
      tables.sin[index] = store(std::sin(angle));
    }
  }
  return tables;
}

}  // namespace mulligan
