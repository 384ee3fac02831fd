// C++ side of recorder.h: recording of kernel calls. A refusal of the host becomes an exception.
#pragma once

#include <mulligan/recorder.h>
#include <mulligan/plugin.hpp>

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

// A tensor of the graph being recorded; `absent` stands for an optional argument that is not given.
using Value = mlg_value;
inline constexpr Value absent = 0;

// A shape without data: shape(MLG_F32, {rows, columns}).
inline mlg_tensor shape(mlg_dtype dtype, std::span<const std::int64_t> dims) {
  if (dims.size() > MLG_MAX_RANK) throw Error("a tensor has at most four dimensions; flatten some of them");
  mlg_tensor result{nullptr, dtype, static_cast<std::int32_t>(dims.size()), {1, 1, 1, 1}};
  for (std::size_t axis = 0; axis < dims.size(); ++axis) result.shape[axis] = dims[axis];
  return result;
}
inline mlg_tensor shape(mlg_dtype dtype, std::initializer_list<std::int64_t> dims) {
  return shape(dtype, std::span(dims.begin(), dims.size()));
}
inline mlg_tensor with_dtype(mlg_tensor tensor, mlg_dtype dtype) {
  tensor.dtype = dtype;
  return tensor;
}
inline std::int64_t element_count(const mlg_tensor& t) {
  return t.shape[0] * t.shape[1] * t.shape[2] * t.shape[3];
}

// A named constant of a call; any number or bool.
struct Attribute : mlg_attribute {
  template <typename T>
  requires std::is_arithmetic_v<T> Attribute(const char* name, T value)
      : mlg_attribute{name, static_cast<double>(value)} {}
};
static_assert(sizeof(Attribute) == sizeof(mlg_attribute));

// An optimiser's options for a state, for example {.survives_warmup = true}.
struct StateOptions {
  bool survives_warmup = false;  // kept by runs that keep what warm-up steps left (recorder.h)
};

// Valid only during the call that it is passed to.
class Recorder {
 public:
  explicit Recorder(const mlg_recorder* recorder) : recorder_(*recorder) {}

  // Shape and dtype of a value.
  mlg_tensor describe(Value value) const {
    mlg_tensor result{};
    check(recorder_.describe(recorder_.self, value, &result));
    return result;
  }
  // A persistent tensor, zero at the start of a run, saved in checkpoints under `name` (unique within the
  // plugin's group: begin it with the parameter's name).
  Value state(const std::string& name, const mlg_tensor& shape, StateOptions options = {}) {
    Value result = absent;
    check(recorder_.state(recorder_.self, name.c_str(), &shape, options.survives_warmup, &result));
    return result;
  }
  // A tensor that lives within one replay; must be written before it is read.
  Value scratch(const mlg_tensor& shape) {
    Value result = absent;
    check(recorder_.scratch(recorder_.self, &shape, &result));
    return result;
  }
  // A view of `value` from element `offset` on with another shape, inside the value and of the same dtype.
  Value view(Value value, std::int64_t offset, const mlg_tensor& shape) {
    Value result = absent;
    check(recorder_.view(recorder_.self, value, offset, &shape, &result));
    return result;
  }
  // Appends a kernel call: arguments in the order of the kernel's signature, every attribute by name.
  void launch(const char* kernel, std::span<const Value> arguments,
              std::span<const Attribute> attributes = {}) {
    check(recorder_.launch(recorder_.self, kernel, arguments.data(),
                           static_cast<std::uint32_t>(arguments.size()), attributes.data(),
                           static_cast<std::uint32_t>(attributes.size())));
  }
  void launch(const char* kernel, std::initializer_list<Value> arguments,
              std::initializer_list<Attribute> attributes = {}) {
    launch(kernel, std::span(arguments.begin(), arguments.size()),
           std::span(attributes.begin(), attributes.size()));
  }

 private:
  const mlg_recorder& recorder_;
};

}  // namespace mulligan::sdk

#pragma GCC visibility pop
