#include "framework/model/rope.h"

#include <cmath>
#include <mulligan/kernel.hpp>

namespace mulligan {

namespace {

float frequency_of(const RopeConfig& rope, std::int64_t pair) {
  const auto base = static_cast<float>(rope.base);
  if (rope.form == RopeForm::geometric) {
    // The reference divides 1 by a float32 power.
    const float exponent = static_cast<float>(2 * pair) / static_cast<float>(rope.dims);
    return 1.0F / std::pow(base, exponent);
  }
  const std::int64_t turned = rope.dims / 4;
  if (pair >= turned) return 0;
  // Evenly spaced numbers as torch.linspace(0, 1, turned) makes them: from both ends.
  const float spacing = 1.0F / static_cast<float>(turned - 1);
  const float exponent = pair < turned / 2 ? spacing * static_cast<float>(pair)
                                           : 1.0F - spacing * static_cast<float>(turned - 1 - pair);
  return std::pow(1.0F / base, exponent);
}

}  // namespace

RopeTables rope_tables(const RopeConfig& rope, std::int64_t positions) {
  const std::int64_t half = rope.dims / 2;
  RopeTables tables;
  tables.cos.resize(static_cast<std::size_t>(positions * half));
  tables.sin.resize(tables.cos.size());
  for (std::int64_t pair = 0; pair < half; ++pair) {
    float frequency = frequency_of(rope, pair);
    if (rope.table == RopeTable::bf16) frequency = static_cast<float>(sdk::bfloat16(frequency));
    for (std::int64_t position = 0; position < positions; ++position) {
      const float angle = static_cast<float>(position) * frequency;
      const auto index = static_cast<std::size_t>(position * half + pair);
      tables.cos[index] = std::cos(angle);
      tables.sin[index] = std::sin(angle);
    }
  }
  return tables;
}

RopeTables rope_tables(const ModelConfig& model, std::int64_t positions) {
  RopeTables tables = rope_tables(model.rope, positions);
  if (model.family == ModelFamily::qwen2) {
    for (float& value : tables.sin) value = -value;
  }
  return tables;
}

}  // namespace mulligan
