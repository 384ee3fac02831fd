#include "framework/model/initialise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "framework/core/parallel.h"
#include "framework/core/philox.h"

namespace mulligan {
namespace {

double dot(std::span<const double> a, std::span<const double> b) {
  // Independent partial sums let the compiler vectorise without reordering anything it was not told to.
  std::array<double, 8> sums{};
  std::size_t i = 0;
  for (; i + sums.size() <= a.size(); i += sums.size()) {
    for (std::size_t lane = 0; lane < sums.size(); ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  double total = 0;
  for (; i < a.size(); ++i) total += a[i] * b[i];
  for (const double sum : sums) total += sum;
  return total;
}

// A semi-orthogonal [rows, columns] matrix from a normal one, by modified Gram-Schmidt applied twice along
// the shorter side ("twice is enough"): the distribution is Haar, as with a QR factorisation whose diagonal
// is made positive.
void orthogonal(std::span<float> out, std::int64_t rows, std::int64_t columns, const PhiloxStream& stream) {
  const bool tall = rows > columns;
  const std::int64_t count = tall ? columns : rows;
  const auto length = static_cast<std::size_t>(tall ? rows : columns);
  std::vector<double> vectors(static_cast<std::size_t>(count) * length);
  for (std::size_t i = 0; i < vectors.size(); ++i) vectors[i] = stream.normal(i);
  const auto vector = [&](std::int64_t index) {
    return std::span(vectors).subspan(static_cast<std::size_t>(index) * length, length);
  };
  for (std::int64_t i = 0; i < count; ++i) {
    const auto current = vector(i);
    for (int sweep = 0; sweep < 2; ++sweep) {
      for (std::int64_t j = 0; j < i; ++j) {
        const auto earlier = vector(j);
        const double overlap = dot(current, earlier);
        for (std::size_t k = 0; k < length; ++k) current[k] -= overlap * earlier[k];
      }
    }
    const double inverse = 1.0 / std::sqrt(dot(current, current));
    for (double& element : current) element *= inverse;
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      out[static_cast<std::size_t>(r * columns + c)] = static_cast<float>(
          tall ? vector(c)[static_cast<std::size_t>(r)] : vector(r)[static_cast<std::size_t>(c)]);
    }
  }
}

}  // namespace

std::vector<float> initial_values(const ParameterSpec& parameter, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(parameter.type.elements()), 0.0F);
  if (parameter.type.elements() == 0) return values;  // a model of one layer has no skips
  const std::int64_t entry_size = parameter.type.elements() / parameter.type.dims[0];
  for (const InitialPart& part : parameter.initial) {
    const auto slice =
        std::span(values).subspan(static_cast<std::size_t>(part.begin * entry_size),
                                  static_cast<std::size_t>((part.end - part.begin) * entry_size));
    switch (part.kind) {
      case Initial::zeros:
        break;
      case Initial::constant:
        std::ranges::fill(slice, static_cast<float>(part.value));
        break;
      case Initial::normal:
        PhiloxStream(seed, fmt::format("init/{}", parameter.name)).fill_normal(slice, part.value);
        break;
      case Initial::residual_mix:
        std::ranges::fill(slice.first(slice.size() / 2), 1.0F);
        break;
      case Initial::orthogonal: {
        const std::int64_t rows = parameter.type.dims[1];
        parallel_for(static_cast<std::size_t>(part.end - part.begin), 0, [&](std::size_t index) {
          const std::int64_t entry = part.begin + static_cast<std::int64_t>(index);
          const auto matrix = slice.subspan(index * static_cast<std::size_t>(entry_size),
                                            static_cast<std::size_t>(entry_size));
          orthogonal(matrix, rows, entry_size / rows,
                     PhiloxStream(seed, fmt::format("init/{}/{}", parameter.name, entry)));
        });
        break;
      }
    }
  }
  return values;
}

}  // namespace mulligan
