#include "framework/model/initialise.h"

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "framework/core/error.h"

namespace mulligan {
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
