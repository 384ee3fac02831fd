// Every kernel that a forward pass may call has its formula, so the doctor skips none of them.
#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "framework/plugin/backend.h"
#include "tests/support/plugins.h"
#include "tools/doctor/formulas.h"

namespace mulligan::doctor::doctor_formulas_test {
namespace {

TEST(DoctorFormulas, EveryCoreKernelOfAForwardPassHasOne) {
  // Of the optimisers, clipping, averages and adapters: no forward pass of a model calls them.
  const std::set<std::string_view> others = {
      "clip_scale", "gradient_noise", "lerp_into",       "matmul_add",       "record_scalar",
      "scale_by",   "sum_f64",        "sum_squares_f64", "symmetric_matmul", "uniform_draws"};
  const auto backend = make_test_backend(1);
  std::size_t formulas = 0;
  for (std::uint32_t i = 0; const mlg_kernel* kernel = backend->kernel_at(i); ++i) {
    const std::string_view name = kernel->name;
    if (name.ends_with("_bwd") || others.contains(name)) continue;
    EXPECT_NE(formula_of(name), nullptr) << name << ": write its formula, kernels/NAME/formula.h";
    ++formulas;
  }
  EXPECT_GT(formulas, 25u);
}

}  // namespace
}  // namespace mulligan::doctor::doctor_formulas_test
