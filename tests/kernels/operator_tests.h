// Registers the GoogleTest tests of an operator and keeps the list of kernels that have tests.
#pragma once

#include <initializer_list>
#include <set>
#include <string>

#include "tests/kernels/operator_case.h"

namespace mulligan::kernel_test {

// Tests <operator>.Forward, .Backward, .FiniteDifferences (where there is a gradient) and
// .WrongArgumentsAreRefused. Use at namespace scope:  const RegisterOperator registered{rms_norm()};
struct RegisterOperator {
  RegisterOperator(std::initializer_list<Operator> operators);
};

// For kernels that have tests of another form:  const CoversKernel covered("record_scalar");
struct CoversKernel {
  explicit CoversKernel(const std::string& kernel) { covered().insert(kernel); }
  static std::set<std::string>& covered();
};

}  // namespace mulligan::kernel_test
