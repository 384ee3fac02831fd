#include "framework/graph/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace mulligan {

double Call::attribute(std::string_view name, double absent) const {
  const auto found = std::ranges::find(attributes, name, &Attribute::name);
  return found == attributes.end() ? absent : found->value;
}

Value Graph::add(ValueInfo info) {
  values_.push_back(std::move(info));
  return Value{static_cast<std::uint32_t>(values_.size())};
}

Value Graph::external(std::string_view name, const TensorType& type) {
  for (std::uint32_t index = 0; index < values_.size(); ++index) {
    const ValueInfo& known = values_[index];
    if (known.storage != Storage::external || known.name != name) continue;
    if (known.type != type) {
      throw std::logic_error(
          fmt::format("tensor '{}' is {}, asked for as {}", name, known.type.text(), type.text()));
    }
    return Value{index + 1};
  }
  return add({type, Storage::external, std::string(name), {}, 0});
}

Value Graph::scratch(const TensorType& type, std::string_view hint) {
  return add({type, Storage::scratch, std::string(hint), {}, 0});
}

Value Graph::view(Value value, std::int64_t offset, const TensorType& type) {
  const ValueInfo source = info(value);
  if (type.dtype != source.type.dtype || offset < 0 || offset + type.elements() > source.type.elements()) {
    throw std::logic_error(
        fmt::format("view {} at element {} does not fit into {}", type.text(), offset, source.type.text()));
  }
  const bool nested = source.storage == Storage::view;
  return add({type, Storage::view, source.name, nested ? source.base : value, source.offset + offset});
}

Value Graph::slice(Value value, std::int64_t index) {
  const TensorType whole = type(value);
  TensorType row;
  row.dtype = whole.dtype;
  row.rank = whole.rank - 1;
  for (int axis = 0; axis < row.rank; ++axis) row.dims[axis] = whole.dims[axis + 1];
  return view(value, index * row.elements(), row);
}

void Graph::call(std::string_view kernel, std::vector<Value> arguments, std::vector<Attribute> attributes) {
  calls_.push_back({std::string(kernel), std::move(arguments), std::move(attributes)});
}

const Graph::ValueInfo& Graph::info(Value value) const {
  if (value.id == 0 || value.id > values_.size()) throw std::logic_error("Graph: no such value");
  return values_[value.id - 1];
}

Value Graph::root(Value value) const {
  const ValueInfo& known = info(value);
  return known.storage == Storage::view ? known.base : value;
}

}  // namespace mulligan
