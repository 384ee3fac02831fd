// Determinism of every kernel of the backend, told by its key `batch_invariant` (run.determinism = "batch"):
//   Rows      what a kernel computes of a sequence of tokens has the same bits alone and among 2, 7, 32 or 128
//             sequences, forward and backward (the gradients that have rows);
//   Repeats   three calls, and calls with one to three threads (emulated: in three orders of blocks and threads),
//             give the same bits of everything, sums over rows (gradients of parameters) included. So it does not
//             matter either which rank computes a micro-batch.
// The calls stand in the tests of the kernels (RegisterRows), so this is of the whole program of tests. A kernel of
// which none does fails EveryKernelIsProbed.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "tests/kernels/row_probe.h"
#include "tests/support/long_tests.h"

namespace mulligan::kernel_test::row_invariance_test {
namespace {

BackendFixture& invariant_backend(int variant) {
  static std::map<int, std::unique_ptr<BackendFixture>> fixtures;
  auto& fixture = fixtures[variant];
  if (!fixture) {
    BackendUnderTest under_test = backend_under_test(variant);
    under_test.keys["batch_invariant"] = "true";
    fixture = std::make_unique<BackendFixture>(under_test);
  }
  return *fixture;
}

bool brings(const std::string& kernel) {
  const std::vector<std::string> names = invariant_backend(1).kernel_names();
  return std::ranges::find(names, kernel) != names.end();
}

class KernelRows : public ::testing::TestWithParam<RowCase> {
 protected:
  // body(probe, sequences together) for each compute dtype, overwriting and accumulating. The short form of the
  // tests tries the larger numbers in f32, overwriting, alone; on a slow backend, which compiles each form anew, that
  // is all it tries.
  template <typename Body>
  void for_each_probe(const std::vector<std::int64_t>& few, const std::vector<std::int64_t>& many,
                      Body&& body) {
    const RowCase& row_case = GetParam();
    if (!brings(row_case.kernel)) GTEST_SKIP() << "no part of this backend under batch_invariant";
    const Signature signature = invariant_backend(1).signature(row_case.kernel);
    const bool one_form = invariant_backend(1).is_slow() && !long_tests() && !all_forms();
    for (const mlg_dtype dtype : {MLG_F32, MLG_BF16, MLG_F16}) {
      if (dtype == MLG_F16 && !row_case.f16) continue;
      for (const bool accumulate : {false, true}) {
        if (one_form && (dtype != MLG_F32 || accumulate)) continue;
        const RowProbe probe(row_case, signature, dtype, accumulate);
        if (accumulate && !probe.accumulates()) continue;
        SCOPED_TRACE(row_case.kernel + " " + row_case.arguments + " " + dtype_name(dtype) +
                     (accumulate ? ", accumulating" : ""));
        const bool all = !one_form && (long_tests() || (dtype == MLG_F32 && !accumulate));
        body(probe, all ? many : few);
        if (HasFailure()) return;
      }
    }
  }
};

TEST_P(KernelRows, Rows) {
  for_each_probe({2, 7}, {2, 7, 32, 128}, [](const RowProbe& probe, std::span<const std::int64_t> numbers) {
    if (probe.rows().empty()) return;
    BackendFixture& backend = invariant_backend(2);
    std::map<std::int64_t, KernelResult> alone;
    for (const std::int64_t together : numbers) {
      const KernelResult all = backend.run(probe.call(0, together));
      for (const std::int64_t sequence : {std::int64_t{0}, together / 2, together - 1}) {
        if (!alone.contains(sequence)) alone[sequence] = backend.run(probe.call(sequence, 1));
        for (const std::string& name : probe.rows()) {
          EXPECT_TRUE(probe.rows_of(all, name, sequence) == probe.rows_of(alone[sequence], name, 0))
              << name << " of sequence " << sequence << " of " << together
              << " differs from that of it alone";
        }
      }
    }
  });
}

TEST_P(KernelRows, Repeats) {
  for_each_probe({2}, {7}, [](const RowProbe& probe, std::span<const std::int64_t> numbers) {
    for (const std::int64_t together : numbers) {
      const KernelResult first = invariant_backend(1).run(probe.call(0, together));
      for (const int variant : {1, 1, 2, 3}) {
        const KernelResult again = invariant_backend(variant).run(probe.call(0, together));
        for (const auto& [name, bytes] : first.bytes)
          EXPECT_TRUE(bytes == again.bytes.at(name)) << name << " differs in variant " << variant;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, KernelRows, ::testing::ValuesIn(row_cases()),
                         [](const ::testing::TestParamInfo<RowCase>& info) {
                           return info.param.kernel + "_" + std::to_string(info.index);
                         });

TEST(Determinism, EveryKernelIsProbed) {
  for (const std::string& name : invariant_backend(1).kernel_names()) {
    EXPECT_TRUE(std::ranges::any_of(row_cases(), [&](const RowCase& known) { return known.kernel == name; }))
        << name << ": say in its test which of its arguments have rows of tokens (RegisterRows)";
  }
}

TEST(Determinism, TheBackendPromisesWhatItIsTold) {
  BackendFixture& told = invariant_backend(1);
  EXPECT_EQ(told.table().determinism(told.instance()), MLG_DETERMINISM_BATCH);
  BackendFixture& untold = backend_with_threads(1);
  EXPECT_LT(untold.table().determinism(untold.instance()), MLG_DETERMINISM_BATCH);
}

}  // namespace
}  // namespace mulligan::kernel_test::row_invariance_test
