#include "tests/kernels/reference.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace mulligan::kernel_test {
namespace {

template <typename S>
Formula<S> prepare(const Case& c, const Arrays& inputs) {
  Formula<S> call;
  call.attributes.insert(c.attributes.begin(), c.attributes.end());
  for (const Operand& output : c.outputs) {
    call.outputs[output.name] = {output.shape, std::vector<S>(element_count(output.shape), S(0.0))};
  }
  for (const auto& [name, array] : inputs) {
    Values<S>& values = call.inputs[name];
    values.shape = array.shape;
    values.data.reserve(array.values.size());
    for (const double value : array.values) {
      if constexpr (std::is_same_v<S, Var>) {
        values.data.push_back(Var::input(value));
      } else {
        values.data.push_back(value);
      }
    }
  }
  return call;
}

}  // namespace

Generator normal(double mean, double deviation) {
  return
      [=](Random& random, std::int64_t) { return std::normal_distribution<double>(mean, deviation)(random); };
}

Generator uniform_integer(std::int64_t low, std::int64_t high) {
  return [=](Random& random, std::int64_t) {
    return static_cast<double>(std::uniform_int_distribution<std::int64_t>(low, high)(random));
  };
}

Generator values(std::vector<double> list) {
  return [list = std::move(list)](Random&, std::int64_t index) { return list.at(index); };
}

Generator squared_normal() {
  return [](Random& random, std::int64_t i) { return std::pow(normal()(random, i), 2); };
}

mlg_dtype dtype_of(const Operand& operand, mlg_dtype compute) {
  return operand.dtype.value_or(compute);
}

const std::vector<double>& NormalNumbers::first(std::size_t count) {
  while (numbers_.size() < count) numbers_.push_back(normal()(random_, 0));
  return numbers_;
}

DrawnInputs::DrawnInputs(const Case& c, std::uint64_t seed) : case_(c), seed_(seed) {
  Random random(seed);
  for (const Operand& operand : c.inputs) {
    std::vector<double>& values = exact_.emplace_back();
    values.reserve(element_count(operand.shape));
    for (std::int64_t i = 0; i < element_count(operand.shape); ++i)
      values.push_back(operand.generate(random, i));
  }
}

Arrays DrawnInputs::rounded(mlg_dtype compute, const std::set<std::string>& present) {
  if (compute != compute_) {
    rounded_.clear();
    compute_ = compute;
    for (std::size_t i = 0; i < exact_.size(); ++i) {
      const Operand& operand = case_.inputs[i];
      Array& array = rounded_[operand.name] = {dtype_of(operand, compute), operand.shape, exact_[i]};
      for (double& value : array.values) value = round_to(array.dtype, value);
    }
  }
  Arrays inputs;
  for (const auto& [name, array] : rounded_)
    if (present.count(name)) inputs.emplace(name, array);
  return inputs;
}

Arrays reference_outputs(const Operator& op, const Case& c, const Arrays& inputs, mlg_dtype compute) {
  Formula<double> call = prepare<double>(c, inputs);
  op.value(call);
  Arrays outputs;
  for (const Operand& operand : c.outputs) {
    Values<double>& values = call.out(operand.name);
    outputs[operand.name] = {dtype_of(operand, compute), operand.shape, std::move(values.data)};
  }
  return outputs;
}

TracedFormula::TracedFormula(const Operator& op, const Case& c, const Arrays& inputs) : inputs_(inputs) {
  Tape::current().clear();
  Formula<Var> call = prepare<Var>(c, inputs);
  for (const auto& [name, values] : call.inputs) {
    std::vector<std::int64_t>& nodes = nodes_[name];
    for (const Var& x : values.data) nodes.push_back(x.index);
  }
  op.traced(call);
  for (auto& [name, values] : call.outputs) outputs_[name] = std::move(values.data);
}

Arrays TracedFormula::gradients(const Arrays& cotangents) const {
  std::vector<double> seed(Tape::current().size(), 0.0);
  for (const auto& [name, cotangent] : cotangents) {
    const std::vector<Var>& outputs = outputs_.at(name);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].index >= 0) seed[outputs[i].index] += cotangent.values.at(i);
    }
  }
  const std::vector<double> gradient = Tape::current().gradients(std::move(seed));
  Arrays result;
  for (const auto& [name, array] : inputs_) {
    result[name] = {array.dtype, array.shape, {}};
    result[name].values.reserve(array.values.size());
    for (const std::int64_t node : nodes_.at(name)) result[name].values.push_back(gradient.at(node));
  }
  return result;
}

double finite_difference(const Operator& op, const Case& c, Arrays inputs, const Arrays& cotangents,
                         const std::string& input, std::int64_t index) {
  const auto objective = [&] {
    Formula<double> call = prepare<double>(c, inputs);
    op.value(call);
    double sum = 0;
    for (const auto& [name, cotangent] : cotangents) {
      const std::vector<double>& outputs = call.out(name).data;
      for (std::size_t i = 0; i < outputs.size(); ++i) sum += cotangent.values.at(i) * outputs[i];
    }
    return sum;
  };
  double& x = inputs.at(input).values.at(index);
  const double center = x, step = 1e-5 * std::max(1.0, std::abs(x));
  x = center + step;
  const double above = objective();
  x = center - step;
  const double below = objective();
  return (above - below) / (2 * step);
}

std::string difference(const Array& actual, const std::vector<double>& expected, double tolerance) {
  if (actual.values.size() != expected.size()) return "it has another number of elements than the reference";
  double sum_of_squares = 0;
  for (const double value : expected) sum_of_squares += value * value;
  const double rms = std::sqrt(sum_of_squares / std::max<std::size_t>(1, expected.size()));
  double worst = 0;
  std::size_t where = expected.size();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (actual.values[i] == expected[i]) continue;  // also equal infinities
    const double scale = std::max({rms, std::abs(expected[i]), 1e-12});
    double error = std::abs(actual.values[i] - expected[i]) / scale;
    if (!std::isfinite(error)) error = HUGE_VAL;
    if (error > worst) worst = error, where = i;
  }
  if (worst <= tolerance) return "";
  std::ostringstream text;
  text.precision(9);
  text << "element " << where << " of " << expected.size() << " is " << actual.values[where] << " and not "
       << expected[where] << " (error " << worst << " of max(rms " << rms << ", |reference|), allowed "
       << tolerance << ")";
  return text.str();
}

}  // namespace mulligan::kernel_test
