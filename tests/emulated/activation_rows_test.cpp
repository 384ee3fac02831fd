// Parts of rows have the bits of the whole; pieces of a frequent row are added up apart.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/backend_under_test.h"
#include "tests/kernels/operator_case.h"

namespace mulligan::kernel_test::activation_rows_test {
namespace {

class Device {
 public:
  explicit Device(int activation_rows)
      : backend_({plugin_file("cuda"),
                  "",
                  {{"device", "\"emulated\""},
                   {"log_launches", "true"},
                   {"activation_rows", std::to_string(activation_rows)}},
                  false},
                 &log_) {}

  std::map<std::string, std::vector<std::byte>> run(const KernelCall& call) {
    log_.clear();
    return backend_.run(call).bytes;
  }
  std::ptrdiff_t logged(const std::string& part) const {
    return std::ranges::count_if(log_, [&](const std::string& line) { return line.find(part) != line.npos; });
  }

 private:
  std::vector<std::string> log_;
  BackendFixture backend_;
};

std::vector<KernelCall> calls(mlg_dtype dtype, std::int64_t rows, std::int64_t width, std::int64_t features) {
  Random random(7);
  const Array x = draw(dtype, {rows, width}, random), up = draw(dtype, {features, width}, random),
              down = draw(dtype, {width, features}, random), u = draw(dtype, {rows, features}, random),
              result{dtype, {rows, features}, {}};
  const std::map<std::string, double> slope{{"slope", 0.5}};
  return {{"linear_leaky_relu_squared_fwd", {{"x", x}, {"w", up}, {"u", result}, {"y", result}}, slope, {}},
          {"linear_leaky_relu_squared_fwd", {{"x", x}, {"w", up}, {"y", result}}, slope, {}},
          {"linear_leaky_relu_squared_bwd", {{"dy", x}, {"w", down}, {"u", u}, {"du", result}}, slope, {}}};
}

TEST(ActivationRows, PartsHaveTheBitsOfTheWhole) {
  for (const mlg_dtype dtype : {MLG_F32, MLG_BF16}) {
    for (const KernelCall& call : calls(dtype, 67, 40, 72)) {
      SCOPED_TRACE(call.kernel);
      // Device by device: one log at a time.
      std::map<std::string, std::vector<std::byte>> whole;
      {
        Device device(0);
        whole = device.run(call);
        EXPECT_EQ(device.logged("a matmul"), 1);
        EXPECT_EQ(device.logged("launch of"), 1);
      }
      for (const auto& [rows, parts] : {std::pair{16, 5}, {67, 1}, {1, 67}, {1000, 1}}) {
        Device device(rows);
        EXPECT_EQ(device.run(call), whole) << rows;
        EXPECT_EQ(device.logged("a matmul"), parts) << rows;
        EXPECT_EQ(device.logged("launch of"), parts) << rows;
      }
    }
  }
}

// Seven features of bf16: rows of 14 bytes. Five of them are no multiple of 16 bytes, eight are.
TEST(ActivationRows, PartsBeginAtMultiplesOfSixteenBytes) {
  for (const KernelCall& call : calls(MLG_BF16, 20, 24, 7)) {
    for (const auto& [rows, parts] : {std::pair{5, 1}, {8, 3}}) {
      Device device(rows);
      device.run(call);
      EXPECT_EQ(device.logged("a matmul"), parts) << rows;
    }
  }
}

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
    const KernelResult result = backend.run({.kernel = "embedding_bwd",
                                             .arguments = {{"ids", ids}, {"dx", dx}, {"dtable", table}},
                                             .attributes = {},
                                             .aliases = {}});
    // The first piece is lost, six of 128 and one of 104 are kept.
    for (std::int64_t j = 0; j < kWidth; ++j)
      EXPECT_EQ(result.written.at("dtable").values[3 * kWidth + j], 0x1p24 + 6 * 128 + 104) << others;
  }
}

}  // namespace
}  // namespace mulligan::kernel_test::activation_rows_test
