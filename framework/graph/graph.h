// The intermediate representation: a flat list of kernel calls on tensors of fixed shape.
//
// A Graph is built once per (mode, shape) and executed many times by a Program (program.h). Differentiation (tape.h), models
// and the places of tensors are outside of it.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/tensor_type.h"

namespace mulligan {

// A tensor of one Graph. The default value is "absent" (an optional argument that is not given).
struct Value {
  std::uint32_t id = 0;
  explicit operator bool() const { return id != 0; }
  bool operator==(const Value&) const = default;
};

struct Attribute {
  std::string name;
  double value = 0;
};

struct Call {
  std::string kernel;
  std::vector<Value> arguments;  // in the order of the kernel's signature
  std::vector<Attribute> attributes;

  // `absent` if the call has no such attribute.
  double attribute(std::string_view name, double absent = 0) const;
};

class Graph {
 public:
  enum class Storage {
    external,  // lives in a TensorStore under `name`, outlasts the run of the graph
    scratch,   // lives in the arena between its first and last mention
    view,      // part of another value
  };
  struct ValueInfo {
    TensorType type;
    Storage storage = Storage::scratch;
    std::string name;         // of externals; a hint for scratch
    Value base;               // of views: never itself a view
    std::int64_t offset = 0;  // of views: elements from the start of `base`
    bool kept = false;        // of roots: keep()
  };

  // The persistent tensor `name`. A second request returns the same value; another type is a std::logic_error.
  Value external(std::string_view name, const TensorType& type);
  // A tensor that must be written before it is read, within one run.
  Value scratch(const TensorType& type, std::string_view hint = "");
  // Elements [offset, offset + type.elements()) of `value`, same dtype. Throws std::logic_error
  // outside of it.
  Value view(Value value, std::int64_t offset, const TensorType& type);
  // Row `index` of the first dimension: [n, a, b] -> [a, b].
  Value slice(Value value, std::int64_t index);
  // The same elements under another shape.
  Value reshape(Value value, const TensorType& type) { return view(value, 0, type); }

  // Appends a kernel call; attributes by name, in any order.
  void call(std::string_view kernel, std::vector<Value> arguments, std::vector<Attribute> attributes = {});

  // The value is read after the run, so every pass must preserve it.
  void keep(Value value) { values_[root(value).id - 1].kept = true; }
  // Replaces all calls.
  void set_calls(std::vector<Call> calls) { calls_ = std::move(calls); }

  const ValueInfo& info(Value value) const;
  const TensorType& type(Value value) const { return info(value).type; }
  // The value whose storage this one occupies: itself, or a view's base.
  Value root(Value value) const;
  std::span<const Call> calls() const { return calls_; }
  // All values, ids 1 to value_count().
  std::uint32_t value_count() const { return static_cast<std::uint32_t>(values_.size()); }

 private:
  Value add(ValueInfo info);
  std::deque<ValueInfo> values_;  // a deque: references to types stay valid while values are added
  std::vector<Call> calls_;
};

}  // namespace mulligan
