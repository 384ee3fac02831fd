#include "framework/model/initialise.h"

#include <fnmatch.h>

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/parallel.h"
#include "framework/core/philox.h"
#include "framework/model/orthogonal.h"

namespace mulligan {
namespace {

// A semi-orthogonal [rows, columns] matrix from a normal one, orthonormal along its shorter side.
void orthogonal(std::span<float> out, std::int64_t rows, std::int64_t columns, const PhiloxStream& stream) {
  const bool tall = rows > columns;
  const auto count = static_cast<std::size_t>(tall ? columns : rows),
             length = static_cast<std::size_t>(tall ? rows : columns);
  std::vector<double> vectors(count * length);
  for (std::size_t i = 0; i < vectors.size(); ++i) vectors[i] = stream.normal(i);
  make_orthonormal(vectors, count, length);
  for (std::size_t v = 0; v < count; ++v) {
    for (std::size_t k = 0; k < length; ++k)
      out[tall ? k * count + v : v * length + k] = static_cast<float>(vectors[v * length + k]);
  }
}

// Numbers of a head are drawn at places of their own: coins, then the order of what they count.
void fill_signs(std::span<float> out, const InitialPart& part, std::uint64_t seed) {
  const LayerSigns& signs = part.signs;
  const auto stream_of = [seed](std::int64_t layer) {
    return PhiloxStream(seed, fmt::format("init/signs/{}", layer));
  };
  const PhiloxStream own = stream_of(signs.layer);
  const auto width = static_cast<std::size_t>(signs.head_width);
  const bool balanced = signs.balanced_from >= 0 && signs.layer >= signs.balanced_from;
  const std::int64_t into_pair = balanced ? (signs.layer - signs.balanced_from) % 2 : 0;
  const PhiloxStream coins = stream_of(signs.layer - into_pair);
  for (std::size_t head = 0; head < out.size() / width; ++head) {
    const auto channels = out.subspan(head * width, width);
    const std::uint64_t first = 2 * head * width;
    std::vector<double> sign(width);
    for (std::size_t i = 0; i < width; ++i) sign[i] = coins.uniform(first + i) < 0.5 ? -1 : 1;
    if (balanced) {
      const double half = static_cast<double>(width) / 2;
      const double heads_up = static_cast<double>(std::ranges::count(sign, 1.0));
      const auto plus = static_cast<std::size_t>(std::nearbyint(half + (heads_up - half) / 2));
      const std::size_t own_plus = into_pair == 0 ? plus : width - plus;
      for (std::size_t i = 0; i < width; ++i) sign[i] = i < own_plus ? 1 : -1;
      for (std::size_t i = width; i > 1; --i) {
        const double draw = own.uniform(first + width + i - 1);
        std::swap(sign[i - 1], sign[static_cast<std::size_t>(draw * static_cast<double>(i))]);
      }
    }
    for (std::size_t i = 0; i < width; ++i) channels[i] = static_cast<float>(1 + part.value * sign[i]);
  }
}

// The draws of parameters, each by itself; what needs none is written at once.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(seed) {}

  void add(const ParameterSpec& parameter, std::span<float> values);
  void make(int threads) {
    parallel_for(draws_.size(), threads, [this](std::size_t i) { draws_[i](); });
  }

 private:
  void add_numbers(const ParameterSpec& parameter, std::span<float> slice, std::size_t first,
                   const InitialPart& part);
  void add_orthogonal(const ParameterSpec& parameter, std::span<float> slice, std::int64_t first_entry);

  std::uint64_t seed_;
  std::vector<std::function<void()>> draws_;
};

// Normal or uniform numbers. `first`: the slice's first element within the parameter, whose numbers are those of one
// stream.
void Draws::add_numbers(const ParameterSpec& parameter, std::span<float> slice, std::size_t first,
                        const InitialPart& part) {
  constexpr std::size_t piece = 1 << 17;
  const PhiloxStream stream(seed_, fmt::format("init/{}", parameter.name));
  for (std::size_t begin = 0; begin < slice.size(); begin += piece) {
    const auto out = slice.subspan(begin, std::min(piece, slice.size() - begin));
    draws_.push_back([=, at = first + begin, scale = part.value, normal = part.kind == Initial::normal] {
      if (normal) return stream.fill_normal(out, scale, at);
      for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = static_cast<float>(scale * (2 * stream.uniform(at + i) - 1));
    });
  }
}

void Draws::add_orthogonal(const ParameterSpec& parameter, std::span<float> slice, std::int64_t first_entry) {
  const auto entry_size = static_cast<std::size_t>(parameter.type.elements() / parameter.type.dims[0]);
  const std::int64_t rows = parameter.type.dims[1], columns = static_cast<std::int64_t>(entry_size) / rows;
  for (std::size_t begin = 0; begin < slice.size(); begin += entry_size, ++first_entry) {
    const auto matrix = slice.subspan(begin, entry_size);
    const PhiloxStream stream(seed_, fmt::format("init/{}/{}", parameter.name, first_entry));
    draws_.push_back([=] { orthogonal(matrix, rows, columns, stream); });
  }
}

void Draws::add(const ParameterSpec& parameter, std::span<float> values) {
  const std::int64_t entry_size = parameter.type.elements() / parameter.type.dims[0];
  for (const InitialPart& part : parameter.initial) {
    const auto first = static_cast<std::size_t>(part.begin * entry_size);
    const auto slice = values.subspan(first, static_cast<std::size_t>((part.end - part.begin) * entry_size));
    switch (part.kind) {
      case Initial::zeros:
        break;
      case Initial::constant:
        std::ranges::fill(slice, static_cast<float>(part.value));
        break;
      case Initial::normal:
      case Initial::uniform:
        add_numbers(parameter, slice, first, part);
        break;
      case Initial::signs:
        fill_signs(slice, part, seed_);
        break;
      case Initial::residual_mix:
        std::ranges::fill(slice.first(slice.size() / 2), 1.0F);
        break;
      case Initial::orthogonal:
        add_orthogonal(parameter, slice, part.begin);
        break;
    }
  }
}

}  // namespace

std::vector<std::vector<float>> initial_values(std::span<const ParameterSpec> parameters, std::uint64_t seed,
                                               int threads) {
  std::vector<std::vector<float>> values;
  Draws draws(seed);
  for (const ParameterSpec& parameter : parameters) {
    values.emplace_back(static_cast<std::size_t>(parameter.type.elements()), 0.0F);
    // A model of one layer has no skips. What a vector holds stays where it is when it is moved.
    if (parameter.type.elements() > 0) draws.add(parameter, values.back());
  }
  draws.make(threads);
  return values;
}

std::vector<float> initial_values(const ParameterSpec& parameter, std::uint64_t seed) {
  return std::move(initial_values(std::span(&parameter, 1), seed, 0).front());
}

namespace {

constexpr std::string_view blocks = "blocks.";

// Returns the layer number in a parameter's name: 3 for "blocks.3.norm1.gains".
std::optional<std::int64_t> layer_of(std::string_view name) {
  if (!name.starts_with(blocks)) return {};
  name.remove_prefix(blocks.size());
  std::int64_t layer = 0;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), layer);
  if (read.ec != std::errc()) return {};
  return layer;
}

bool matches(const InitialValuesRow& row, const std::string& name) {
  return fnmatch(row.match.c_str(), name.c_str(), 0) == 0;
}

// Returns `part` of the parameter with the initial values that the row sets.
InitialPart drawn(const ModelConfig& model, const InitialValuesRow& row, const ParameterSpec& spec,
                  InitialPart part) {
  const auto is_one_of = [&](InitialLaw law, InitialLaw other) { return row.law == law || row.law == other; };
  part.value = row.scale;
  part.kind = is_one_of(InitialLaw::normal, InitialLaw::normal_by_inputs)     ? Initial::normal
              : is_one_of(InitialLaw::uniform, InitialLaw::uniform_by_inputs) ? Initial::uniform
                                                                              : Initial::constant;
  if (is_one_of(InitialLaw::normal_by_inputs, InitialLaw::uniform_by_inputs)) {
    const std::int64_t inputs =
        spec.inputs > 0 ? spec.inputs : spec.type.dims[static_cast<std::size_t>(spec.type.rank - 1)];
    part.value /= std::sqrt(static_cast<double>(inputs));
  }
  if (row.law != InitialLaw::signs) return part;
  const auto layer = layer_of(spec.name);
  if (!layer || spec.type.elements() % model.head_width != 0) {
    throw config_error(
        "{}: '{}' has no layer with heads of {} channels, so it cannot have the law \"signs\"; choose "
        "another law or a narrower pattern.",
        row.origin.text(), spec.name, model.head_width);
  }
  part.kind = Initial::signs;
  part.signs = {*layer, model.head_width, row.balanced_from};
  return part;
}

}  // namespace

void apply_initial_rows(const ModelConfig& model, std::span<const InitialValuesRow> rows,
                        std::vector<ParameterLayout>& layouts) {
  std::vector<bool> used(rows.size(), false);
  for (ParameterLayout& layout : layouts) {
    ParameterSpec& spec = layout.spec;
    const std::vector<BankMatrix> matrices = bank_matrices(spec);
    std::vector<InitialPart> parts;
    for (InitialPart part : spec.initial) {
      const std::int64_t end = part.end;
      do {
        const std::string& name =
            matrices.empty() ? spec.name : matrices[static_cast<std::size_t>(part.begin)].name;
        part.end = matrices.empty() ? end : part.begin + 1;
        const auto row = std::ranges::find_if(rows, [&](const InitialValuesRow& candidate) {
          return matches(candidate, spec.name) || matches(candidate, name);
        });
        parts.push_back(row == rows.end() ? part : drawn(model, *row, spec, part));
        if (row != rows.end()) used[static_cast<std::size_t>(row - rows.begin())] = true;
        part.begin = part.end;
      } while (part.begin < end);
    }
    spec.initial = std::move(parts);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (used[i]) continue;
    throw config_error(
        "{}: the row of [[init.values]] with match = \"{}\" is the first to match no parameter; 'mulligan train "
        "--dry-run' lists their names.",
        rows[i].origin.text(), rows[i].match);
  }
}

}  // namespace mulligan
