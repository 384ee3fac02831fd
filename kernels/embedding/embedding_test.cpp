// embedding against its formula, and what makes its backward pass deterministic.
#include <gtest/gtest.h>

#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::embedding_test {
namespace {

Case embedding_case(std::int64_t tokens, std::int64_t vocabulary, std::int64_t width) {
  return {{{"ids", {tokens}, MLG_I32, uniform_integer(0, vocabulary - 1)}, {"table", {vocabulary, width}}},
          {{"x", {tokens, width}}},
          {}};
}

Operator embedding() {
  Operator op{.forward = "embedding_fwd", .backward = "embedding_bwd", .f32_gradients = {"dtable"}};
  // Few rows: every row is hit often. Many: most never. On cuda, 3000 rows are sorted by two digits; the widest are cut in slices.
  op.cases = {embedding_case(17, 5, 7),     embedding_case(9, 40, 33),   embedding_case(3000, 3, 9),
              embedding_case(700, 311, 65), embedding_case(300, 3, 600), embedding_case(1100, 3000, 3),
              embedding_case(5, 3, 4099),   embedding_case(5, 3, 8200)};
  return op.computes([](auto& call) {
    auto &table = call.in("table"), &x = call.out("x");
    for (std::int64_t t = 0; t < x.dim(0); ++t) {
      for (std::int64_t j = 0; j < x.dim(1); ++j) x(t, j) = table(call.index("ids", t), j);
    }
  });
}

const RegisterOperator registered{embedding()};

// 1 + 2^-24 + 2^-24 rounds to 1 only when the small numbers are added one by one, after the 1.
TEST(Embedding, GradientsOfOneRowAreAddedInOrderOfTokens) {
  const double tiny = 0x1p-24;
  const std::int64_t tokens = 200, width = 512;
  Array ids{MLG_I32, {tokens}, {}}, dx{MLG_F32, {tokens, width}, {}};
  for (std::int64_t t = 0; t < tokens; ++t) {
    ids.values.push_back(t % 2 == 0 ? 3 : 1);
    dx.values.insert(dx.values.end(), width, t == 0 ? 1.0 : tiny);
  }
  for (const int threads : {1, 2, 3}) {
    const Array table{MLG_F32, {5, width}, std::vector<double>(5 * width, 0.0)};
    const auto result =
        backend_with_threads(threads).run(kernel_call("embedding_bwd", "ids dx dtable", {ids, dx, table}));
    const std::vector<double>& sums = result.written.at("dtable").values;
    for (std::int64_t j = 0; j < width; ++j) {
      EXPECT_EQ(sums[width + j], 100 * tiny);
      EXPECT_EQ(sums[3 * width + j], 1.0);
      EXPECT_EQ(sums[4 * width + j], 0.0);
    }
  }
}

// 2^24 + 1 rounds to 2^24 in f32: what is added one by one to a large value is lost, and what a piece of a frequent row has
// added up before is not. `others`: tokens of a row before it, which move its place among the sorted tokens.
TEST(Embedding, PiecesOfAFrequentRowAreAddedUpApartOnTheCudaBackend) {
  if (reference_backend() == nullptr) GTEST_SKIP() << "the cpu backend adds in order of tokens";
  constexpr std::int64_t frequent = 1000, width = 24;
  const Array table{MLG_F32, {5, width}, std::vector<double>(5 * width, 0x1p24)};
  for (const std::int64_t others : {0, 1, 127, 128, 300}) {
    const std::int64_t tokens = frequent + others;
    Array ids{MLG_I32, {tokens}, {}};
    for (std::int64_t t = 0; t < tokens; ++t) ids.values.push_back(t < others ? 1 : 3);
    const Array dx{MLG_F32, {tokens, width}, std::vector<double>(tokens * width, 1.0)};
    const auto result =
        backend_with_threads(2).run(kernel_call("embedding_bwd", "ids dx dtable", {ids, dx, table}));
    // The first piece is lost, six of 128 and one of 104 are kept.
    for (std::int64_t j = 0; j < width; ++j)
      EXPECT_EQ(result.written.at("dtable").values[3 * width + j], 0x1p24 + 6 * 128 + 104) << others;
  }
}

TEST(Embedding, IdsOutsideTheTableAreRefused) {
  for (const double id : {-1.0, 5.0}) {
    const Array ids{MLG_I32, {3}, {0, id, 1}}, table{MLG_F32, {5, 2}, std::vector<double>(10, 1.0)};
    const Array x{MLG_F32, {3, 2}, std::vector<double>(6, 1.0)};
    EXPECT_TRUE(
        backend_with_threads(2).refuses_values(kernel_call("embedding_fwd", "ids table x", {ids, table, x})));
    EXPECT_TRUE(backend_with_threads(2).refuses_values(
        kernel_call("embedding_bwd", "ids dx dtable", {ids, x, table})));
  }
}

const RegisterRows registered_rows{{"embedding_fwd", "ids:T/i table:Vd x:Td"},
                                   {"embedding_bwd", "ids:T/i dx:Td dtable:Vd/f"}};

}  // namespace
}  // namespace mulligan::kernel_test::embedding_test
