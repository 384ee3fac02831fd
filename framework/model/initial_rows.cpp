#include "framework/model/initial_rows.h"

#include <fnmatch.h>

#include <charconv>
#include <cmath>
#include <optional>

#include "framework/core/error.h"

namespace mulligan {
namespace {

constexpr std::string_view blocks = "blocks.";

// Of "blocks.3.norm1.gains" 3.
std::optional<std::int64_t> layer_of(std::string_view name) {
  if (!name.starts_with(blocks)) return {};
  name.remove_prefix(blocks.size());
  std::int64_t layer = 0;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), layer);
  if (read.ec != std::errc()) return {};
  return layer;
}

InitialPart drawn(const ModelConfig& model, const InitialValuesRow& row, const ParameterSpec& spec) {
  InitialPart part{0, spec.type.dims[0], Initial::constant, row.scale};
  const std::int64_t inputs =
      spec.inputs > 0 ? spec.inputs : spec.type.dims[static_cast<std::size_t>(spec.type.rank - 1)];
  const double by_inputs = row.scale / std::sqrt(static_cast<double>(inputs));
  switch (row.law) {
    case InitialLaw::constant:
      break;
    case InitialLaw::normal:
      part.kind = Initial::normal;
      break;
    case InitialLaw::normal_by_inputs:
      part.kind = Initial::normal;
      part.value = by_inputs;
      break;
    case InitialLaw::uniform:
      part.kind = Initial::uniform;
      break;
    case InitialLaw::uniform_by_inputs:
      part.kind = Initial::uniform;
      part.value = by_inputs;
      break;
    case InitialLaw::signs: {
      const auto layer = layer_of(spec.name);
      if (!layer || spec.type.elements() % model.head_width != 0) {
        throw config_error(
            "{}: '{}' has no layer with heads of {} channels, so it cannot have the law \"signs\"; choose "
            "another law or a narrower pattern.",
            row.origin.text(), spec.name, model.head_width);
      }
      part.kind = Initial::signs;
      part.signs = {*layer, model.head_width, row.balanced_from};
      break;
    }
  }
  return part;
}

}  // namespace

void apply_initial_rows(const ModelConfig& model, std::span<const InitialValuesRow> rows,
                        std::vector<ParameterLayout>& layouts) {
  std::vector<bool> used(rows.size(), false);
  for (ParameterLayout& layout : layouts) {
    ParameterSpec& spec = layout.spec;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (fnmatch(rows[i].match.c_str(), spec.name.c_str(), 0) != 0) continue;
      spec.initial = {drawn(model, rows[i], spec)};
      used[i] = true;
      break;
    }
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
