// What a test states about one operator: its formula, written once and naively, and the shapes to try.
//
// From that, operator_tests.h checks the forward kernel and the backward kernel (exact gradients through tape.h, which finite
// differences check in turn). It covers every combination of optional arguments and accumulate flags, f32, bf16 and f16, and one
// to three threads. It also checks guard bytes and the refusal of wrong arguments.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/kernels/array.h"
#include "tests/kernels/tape.h"

namespace mulligan::kernel_test {

using Random = std::mt19937_64;
using Shape = std::vector<std::int64_t>;

// Normal values.
inline Array draw(mlg_dtype dtype, const Shape& shape, Random& random) {
  Array array{dtype, shape, {}};
  std::normal_distribution<double> normal;
  for (std::int64_t i = 0; i < element_count(shape); ++i)
    array.values.push_back(round_to(dtype, normal(random)));
  return array;
}
// Value of one element; `index` counts elements in row-major order.
using Generator = std::function<double(Random&, std::int64_t index)>;

Generator normal(double mean = 0.0, double deviation = 1.0);
Generator uniform_integer(std::int64_t low, std::int64_t high);  // both ends included
Generator values(std::vector<double> list);                      // the listed ones, in order
Generator squared_normal();

// One argument of the forward kernel. Without a dtype it has the compute dtype (f32, bf16 or f16, all are tried).
struct Operand {
  std::string name;
  Shape shape;
  std::optional<mlg_dtype> dtype = std::nullopt;
  Generator generate = normal();
};

inline Operand f32(std::string name, Shape shape, Generator generate = normal()) {
  return {std::move(name), std::move(shape), MLG_F32, std::move(generate)};
}

struct Case {
  std::vector<Operand> inputs;   // `in` and `inout` arguments of the forward kernel (inout: the value before)
  std::vector<Operand> outputs;  // `out` and `inout` arguments
  std::map<std::string, double> attributes = {};
};

// A tensor of the formula's scalars.
template <typename S>
struct Values {
  Shape shape;
  std::vector<S> data;

  std::int64_t dim(int axis) const { return shape.at(axis); }
  std::int64_t size() const { return static_cast<std::int64_t>(data.size()); }
  S& operator[](std::int64_t i) { return data.at(i); }
  S& operator()(std::int64_t i, std::int64_t j) { return data.at(i * shape.at(1) + j); }
  S& operator()(std::int64_t i, std::int64_t j, std::int64_t k) {
    return data.at((i * shape.at(1) + j) * shape.at(2) + k);
  }
};

// Tensors by name. Formulas look them up for every element: among a few names a search from the first to the last is quicker
// than one in a tree, and needs no std::string.
template <typename S>
class NamedValues {
 public:
  Values<S>& operator[](const std::string& name) {
    Values<S>* known = find(name);
    return known ? *known : entries_.emplace_back(name, Values<S>{}).second;
  }
  Values<S>* find(std::string_view name) {
    for (auto& [known, values] : entries_)
      if (known == name) return &values;
    return nullptr;
  }
  bool contains(std::string_view name) const { return const_cast<NamedValues*>(this)->find(name) != nullptr; }
  auto begin() { return entries_.begin(); }
  auto end() { return entries_.end(); }

 private:
  std::vector<std::pair<std::string, Values<S>>> entries_;
};

// What a formula sees: in() holds the inputs, out() is to be filled (it starts as zero).
template <typename S>
struct Formula {
  using Scalar = S;
  NamedValues<S> inputs, outputs;
  std::map<std::string, double, std::less<>> attributes;

  bool has(std::string_view name) const { return inputs.contains(name); }
  Values<S>& in(std::string_view name) { return found(inputs, name); }
  Values<S>& out(std::string_view name) { return found(outputs, name); }
  std::int64_t index(std::string_view name, std::int64_t i) {
    return static_cast<std::int64_t>(value_of(in(name)[i]));
  }
  double attribute(std::string_view name) const {
    const auto entry = attributes.find(name);
    if (entry == attributes.end()) throw unknown(name);
    return entry->second;
  }

 private:
  static std::out_of_range unknown(std::string_view name) {
    return std::out_of_range("the formula has no '" + std::string(name) + "'");
  }
  static Values<S>& found(NamedValues<S>& values, std::string_view name) {
    if (Values<S>* known = values.find(name)) return *known;
    throw unknown(name);
  }
};

// The logarithm of the sum of e^z(i) of `count` numbers.
template <typename Z>
auto log_sum(const Z& z, std::int64_t count) {
  using std::exp, std::log;
  double highest = value_of(z(0));
  for (std::int64_t i = 1; i < count; ++i) highest = std::max(highest, value_of(z(i)));
  auto sum = exp(z(0) - highest);
  for (std::int64_t i = 1; i < count; ++i) sum += exp(z(i) - highest);
  return log(sum) + highest;
}

struct Operator {
  std::string forward;
  std::string backward = "";  // "": the operator has no gradient
  std::vector<Case> cases = {};
  std::string suite = "";  // of the tests; "": the forward kernel
  // Arguments of the backward kernel that do not follow the rule d<output> /
  // d<input>: {"upstream", "dtoken_loss"}. The gradient of an output that several stand for is their sum.
  std::map<std::string, std::string> backward_names = {};
  // Gradient arguments that are f32 although their input has the compute dtype (the embedding table's).
  std::set<std::string> f32_gradients = {};
  // Gradients of outputs that are f32 although the output has the compute dtype.
  std::set<std::string> f32_cotangents = {};
  // Arguments whose last extent stands alone, so that a call with another one is not wrong.
  std::vector<std::string> free_extents = {};
  // The compute dtypes to try; one is enough where every operand has a dtype of its own.
  std::vector<mlg_dtype> dtypes = {MLG_F32, MLG_BF16, MLG_F16};
  // Allowed error relative to max(rms of the reference, |reference|).
  double tolerance_f32 = 2e-5;
  double tolerance_bf16 = 2e-2;
  double tolerance_f16 = 4e-3;

  std::function<void(Formula<double>&)> value = {};
  std::function<void(Formula<Var>&)> traced = {};

  // `formula(auto& call)` computes the operator for either scalar; one of a Formula<double> has no gradient.
  template <typename F>
  Operator& computes(F formula) {
    value = formula;
    if constexpr (std::is_invocable_v<F&, Formula<Var>&>) traced = formula;
    return *this;
  }
};

}  // namespace mulligan::kernel_test
