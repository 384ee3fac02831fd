#include "framework/step/update_units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <tuple>

namespace mulligan {
namespace {

// Elements: 256 bytes in bf16, so that parts begin where kernels like tensors to begin.
constexpr std::int64_t part_alignment = 128;

// What parameters of one unit agree on.
auto treatment(const PlannedParameter& p, bool apart) {
  return std::make_tuple(p.trained(), p.optimizer, p.lr_multiplier, p.weight_decay_multiplier,
                         p.layout.master, p.layout.spec.matrix, apart && p.layout.spec.projection,
                         p.communication_dtype);
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

void UpdateUnits::place_externals(TensorStore& store, const Graph& graph) const {
  for (std::uint32_t id = 1; id <= graph.value_count(); ++id) {
    const Graph::ValueInfo& info = graph.info(Value{id});
    if (info.storage == Graph::Storage::external) place(store, info.name, info.type);
  }
}

}  // namespace mulligan
