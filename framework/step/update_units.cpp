#include "framework/step/update_units.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <tuple>

namespace mulligan {
namespace {

// Elements: 256 bytes in bf16, so that parts begin where kernels like tensors to begin.
constexpr std::int64_t part_alignment = 128;

// What parameters of one unit agree on.
auto treatment(const PlannedParameter& p, bool apart) {
  return std::make_tuple(p.trained(), p.optimizer, p.lr_multiplier, p.weight_decay_multiplier,
                         p.layout.master, p.layout.spec.matrix, apart && p.layout.spec.projection,
                         p.communication_dtype, p.averaged);
}

std::int64_t aligned(std::int64_t elements) {
  return (elements + part_alignment - 1) / part_alignment * part_alignment;
}

}  // namespace

UpdateUnits::UpdateUnits(const std::vector<PlannedParameter>& parameters,
                         const std::vector<std::string>& optimizers,
                         const std::function<bool(std::size_t)>& joins, bool apart) {
  const auto joinable = [&](const PlannedParameter& p) {
    return p.trained() && p.communication == Communication::replicated && joins(p.optimizer);
  };
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const PlannedParameter& first = parameters[i];
    const auto same = [&](const PlannedParameter& other) {
      return joinable(other) && treatment(other, apart) == treatment(first, apart);
    };
    const auto alike = joinable(first) ? std::ranges::count_if(parameters, same) : 1;
    if (alike == 1) {
      units_.push_back(first);
      continue;
    }
    if (std::any_of(parameters.begin(), parameters.begin() + static_cast<std::ptrdiff_t>(i), same)) continue;
    Joined joined{fmt::format("joined/{}/{}", optimizers[first.optimizer], joined_.size()), 0, {}};
    for (const PlannedParameter& parameter : parameters) {
      if (!same(parameter)) continue;
      const TensorType& type = parameter.layout.spec.type;
      joined.members.push_back({parameter.name(), type, joined.elements});
      joined.elements += aligned(type.elements());
    }
    PlannedParameter& unit = units_.emplace_back(first);
    unit.layout.spec.name = joined.name;
    unit.layout.spec.type = TensorType(first.layout.spec.type.dtype, {joined.elements});
    unit.layout.spec.initial.clear();
    joined_.push_back(std::move(joined));
  }
}

std::vector<UpdateUnits::Part> UpdateUnits::parts(const std::string& name, const TensorType& type) const {
  for (const Joined& joined : joined_) {
    const std::size_t at = name.find(joined.name);
    if (at == name.npos) continue;
    const std::size_t end = at + joined.name.size();
    if (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end]))) continue;  // of unit 1: 10
    const auto named = [&](const Member& member) {
      return name.substr(0, at) + member.parameter + name.substr(end);
    };
    if (type.elements() != joined.elements) return {{named(joined.members.front()), type, 0}};
    std::vector<Part> parts;
    for (const Member& member : joined.members) {
      parts.push_back({named(member), member.type.as(type.dtype), member.offset});
    }
    return parts;
  }
  return {};
}

void UpdateUnits::place(TensorStore& store, const std::string& name, const TensorType& type) const {
  store.create(name, type);
  for (const Part& part : parts(name, type)) store.create_part(part.name, part.type, name, part.offset);
}

namespace {

// More stages hide more, and cost the latency of a batch each; little is not worth one.
constexpr std::int64_t most_stages = 8;
constexpr std::int64_t least_bytes = std::int64_t{32} << 10;

struct Place {
  std::size_t unit = 0;
  std::int64_t offset = 0;  // in the unit's gradient
};

// Where the gradients that a backward pass names lie, those of joined parameters within their unit.
std::map<std::string, Place, std::less<>> places_of(const UpdateUnits& units) {
  std::map<std::string, Place, std::less<>> places;
  for (std::size_t i = 0; i < units.parameters().size(); ++i) {
    const PlannedParameter& unit = units.parameters()[i];
    const std::string name = gradient_name(unit.name());
    places[name] = {i, 0};
    for (const UpdateUnits::Part& part : units.parts(name, unit.layout.spec.type)) {
      places[part.name] = {i, part.offset};
    }
  }
  return places;
}

}  // namespace

std::vector<GradientPart> gradient_parts(const std::vector<PlannedParameter>& units, int world_size) {
  std::vector<GradientPart> parts;
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (!units[i].trained()) continue;
    const TensorType& type = units[i].layout.spec.type;
    const std::int64_t entry = type.elements() / type.dims[0];
    const std::int64_t share = units[i].updated_type(world_size).dims[0];  // entries of a rank
    const bool cut = units[i].is_cut(world_size);
    const std::int64_t step = type.rank == 3 ? 1 : cut ? share : type.dims[0];  // entries of a part
    for (std::int64_t first = 0; first < type.dims[0]; first += step) {
      const std::int64_t count = std::min(step, type.dims[0] - first);
      const int owner = cut ? static_cast<int>(first / share) : units[i].owner(world_size);
      parts.push_back({i, first * entry, count * entry, owner});
    }
  }
  return parts;
}

std::vector<std::size_t> complete_after(const Graph& graph, const UpdateUnits& units,
                                        const std::vector<GradientPart>& parts) {
  const std::map<std::string, Place, std::less<>> places = places_of(units);
  std::vector<std::size_t> complete(parts.size(), 0);
  for (std::size_t call = 0; call < graph.calls().size(); ++call) {
    for (const Value argument : graph.calls()[call].arguments) {
      if (!argument) continue;
      const Graph::ValueInfo& root = graph.info(graph.root(argument));
      if (root.storage != Graph::Storage::external) continue;
      const auto place = places.find(root.name);
      if (place == places.end()) continue;
      const Graph::ValueInfo& value = graph.info(argument);
      const std::int64_t within = value.storage == Graph::Storage::view ? value.offset : 0;
      const std::int64_t begin = place->second.offset + within, end = begin + value.type.elements();
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const GradientPart& part = parts[i];
        if (part.unit != place->second.unit || part.offset >= end || part.offset + part.elements <= begin)
          continue;
        complete[i] = call + 1;
      }
    }
  }
  return complete;
}

std::vector<ReductionStage> reduction_stages(const std::vector<std::size_t>& complete_after,
                                             const std::vector<std::int64_t>& bytes, std::size_t calls) {
  const std::int64_t total = std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
  const std::int64_t enough = std::max(least_bytes, total / most_stages);
  // What no call mentions comes last: another graph of the step may have written it.
  const auto complete = [&](std::size_t part) {
    return complete_after[part] == 0 ? calls : complete_after[part];
  };
  std::vector<std::size_t> order(complete_after.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, complete);
  std::vector<ReductionStage> stages;
  ReductionStage stage;
  std::int64_t gathered = 0;
  for (const std::size_t part : order) {
    if (gathered >= enough && complete(part) > stage.calls && complete(part) < calls) {
      stages.push_back(std::move(stage));
      stage = {};
      gathered = 0;
    }
    stage.calls = complete(part);
    stage.parts.push_back(part);
    gathered += bytes[part];
  }
  stage.calls = calls;
  stages.push_back(std::move(stage));
  return stages;
}

}  // namespace mulligan
