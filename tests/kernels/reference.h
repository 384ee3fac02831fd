// Running an operator's formula: inputs of a case, reference outputs, exact gradients, comparison with
// a kernel's result.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/kernels/operator_case.h"

namespace mulligan::kernel_test {

using Arrays = std::map<std::string, Array>;

mlg_dtype dtype_of(const Operand& operand, mlg_dtype compute);

// A sequence of normal numbers that many tests share, each number drawn once.
class NormalNumbers {
 public:
  explicit NormalNumbers(std::uint64_t seed) : random_(seed) {}
  // At least the first `count`.
  const std::vector<double>& first(std::size_t count);

 private:
  Random random_;
  std::vector<double> numbers_;
};

// Random inputs of a case, drawn once for all dtypes and choices of operands.
class DrawnInputs {
 public:
  DrawnInputs(const Case& c, std::uint64_t seed);  // keeps a reference to `c`
  bool are_of(const Case& c, std::uint64_t seed) const { return &case_ == &c && seed_ == seed; }
  // Rounded to their dtypes; `present` selects the operands.
  Arrays rounded(mlg_dtype compute, const std::set<std::string>& present);

 private:
  const Case& case_;
  std::uint64_t seed_;
  std::vector<std::vector<double>> exact_;  // by place of the operand
  mlg_dtype compute_ = MLG_ABSENT;          // for which the others were rounded last
  Arrays rounded_;
};

// The formula's outputs in double.
Arrays reference_outputs(const Operator& op, const Case& c, const Arrays& inputs, mlg_dtype compute);

// The formula at these inputs, traced once for gradients with many cotangents. Only one at a time: the tape is shared.
class TracedFormula {
 public:
  TracedFormula(const Operator& op, const Case& c, const Arrays& inputs);
  // With respect to every input, of the sum over `cotangents` (by output name) of <cotangent, output>.
  Arrays gradients(const Arrays& cotangents) const;

 private:
  const Arrays& inputs_;
  std::map<std::string, std::vector<std::int64_t>> nodes_;
  std::map<std::string, std::vector<Var>> outputs_;
};

// The same for `input`'s element `index` by central differences of the formula in double.
double finite_difference(const Operator& op, const Case& c, Arrays inputs, const Arrays& cotangents,
                         const std::string& input, std::int64_t index);

// "" when every value lies within tolerance * max(rms(expected), |expected|); otherwise a sentence on
// the worst one.
std::string difference(const Array& actual, const std::vector<double>& expected, double tolerance);

}  // namespace mulligan::kernel_test
