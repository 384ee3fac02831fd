// The pieces of a frequent row are added up apart.
#include <gtest/gtest.h>

#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/backend_under_test.h"

namespace mulligan::kernel_test::embedding_pieces_test {
namespace {

// 2^24 + 1 rounds to 2^24 in f32: what is added one by one to a large value is lost, and what a piece has added up before is
// not. `others`: tokens of a row before it, which move its place among the sorted tokens.
TEST(EmbeddingPieces, OfAFrequentRowAreAddedUpApart) {
  BackendFixture backend(backend_under_test(2));
  constexpr std::int64_t kTokens = 1000, kWidth = 24;
  for (const std::int64_t others : {0, 1, 127, 128, 300}) {
    const std::int64_t tokens = kTokens + others;
    Array ids{MLG_I32, {tokens}, {}};
    for (std::int64_t t = 0; t < tokens; ++t) ids.values.push_back(t < others ? 1 : 3);
    const Array dx{MLG_F32, {tokens, kWidth}, std::vector<double>(tokens * kWidth, 1.0)},
        table{MLG_F32, {5, kWidth}, std::vector<double>(5 * kWidth, 0x1p24)};
    const KernelResult result = backend.run(kernel_call("embedding_bwd", "ids dx dtable", {ids, dx, table}));
    // The first piece is lost, six of 128 and one of 104 are kept.
    for (std::int64_t j = 0; j < kWidth; ++j)
      EXPECT_EQ(result.written.at("dtable").values[3 * kWidth + j], 0x1p24 + 6 * 128 + 104) << others;
  }
}

}  // namespace
}  // namespace mulligan::kernel_test::embedding_pieces_test
