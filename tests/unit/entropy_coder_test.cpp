// The entropy coder of codes: what goes in comes out, it needs few bytes, and no bytes can harm it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "framework/artifact/code_coder.h"
#include "framework/core/file.h"
#include "framework/core/philox.h"

namespace mulligan::entropy_coder_test {
namespace {

// Rounded normal numbers of standard deviation `sigma`, clamped to [-limit, limit].
std::vector<std::int8_t> normal_codes(std::int64_t count, double sigma, int limit,
                                      const std::string& purpose) {
  const PhiloxStream random(5, purpose);
  std::vector<std::int8_t> codes;
  for (std::int64_t i = 0; i < count; ++i) {
    const double code = std::nearbyint(sigma * random.normal(static_cast<std::uint64_t>(i)));
    codes.push_back(static_cast<std::int8_t>(std::clamp<double>(code, -limit, limit)));
  }
  return codes;
}

double memoryless_bytes(const std::vector<std::int8_t>& codes) {
  std::array<double, 256> counts{};
  for (const std::int8_t code : codes) ++counts[static_cast<std::uint8_t>(code)];
  double bits = 0;
  for (const double count : counts)
    if (count > 0) bits += count * std::log2(static_cast<double>(codes.size()) / count);
  return bits / 8;
}

// Whether decoding throws; what it throws otherwise fails the test.
bool refused(std::string_view bytes, const std::vector<CodeMatrix>& matrices) {
  try {
    decode_codes(bytes, matrices);
  } catch (const std::runtime_error& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("is ") || std::string(error.what()).starts_with("has "))
        << error.what();
    return true;
  }
  return false;
}

TEST(EntropyCoder, AnyCodesComeBackAtOddShapes) {
  for (const double sigma : {0.0, 0.1, 1.0, 2.4, 4.5, 20.0, 200.0}) {
    for (const auto& [rows, columns] :
         std::array<std::pair<int, int>, 5>{{{1, 1}, {1, 700}, {611, 1}, {37, 53}, {128, 17}}}) {
      SCOPED_TRACE(testing::Message() << sigma << " [" << rows << ", " << columns << "]");
      const std::vector<CodeMatrix> matrices{{rows, columns, 3}, {columns, rows, 3}, {rows, columns, 0}};
      const std::vector<std::int8_t> codes = normal_codes(3 * rows * columns, sigma, 127, "odd");
      EXPECT_EQ(decode_codes(encode_codes(codes, matrices), matrices), codes);
    }
  }
}

TEST(EntropyCoder, ExtremeCodesAndNoneComeBack) {
  const std::vector<CodeMatrix> none;
  EXPECT_TRUE(encode_codes({}, none).empty());
  EXPECT_TRUE(decode_codes({}, none).empty());
  std::vector<std::int8_t> codes;
  for (int i = 0; i < 4096; ++i) codes.push_back(static_cast<std::int8_t>(i % 3 == 0 ? -128 : i % 256 - 128));
  const std::vector<CodeMatrix> matrices{{64, 64, 15}};
  EXPECT_EQ(decode_codes(encode_codes(codes, matrices), matrices), codes);
}

// More than one block, so that models go on over the boundary.
TEST(EntropyCoder, BlocksAreSeamless) {
  const std::vector<CodeMatrix> matrices{{2050, 520, 0}, {10, 999, 1}};
  const std::vector<std::int8_t> codes = normal_codes(2050 * 520 + 9990, 2.4, 31, "blocks");
  const std::string bytes = encode_codes(codes, matrices);
  EXPECT_EQ(decode_codes(bytes, matrices), codes);
  EXPECT_LT(static_cast<double>(bytes.size()), 1.005 * memoryless_bytes(codes));
}

// The three steps of the record: 0.222, 0.371 and 0.419 of a row's standard deviation.
TEST(EntropyCoder, NormalCodesCostTheirEntropy) {
  for (const auto& [step, qmax] :
       std::array<std::pair<double, int>, 3>{{{0.222, 63}, {0.371, 31}, {0.419, 31}}}) {
    const std::vector<CodeMatrix> matrices{{2000, 512, 0}};
    const std::vector<std::int8_t> codes = normal_codes(2000 * 512, 1 / step, qmax, "steps");
    const auto bytes = static_cast<double>(encode_codes(codes, matrices).size());
    EXPECT_LT(bytes, 1.005 * memoryless_bytes(codes)) << step;
    EXPECT_GT(bytes, 0.995 * memoryless_bytes(codes)) << "below what is possible: the test measures nothing";
  }
}

// Columns of different spread and columns with means of their own are what a memoryless coder cannot use.
TEST(EntropyCoder, SpreadAndMeanOfColumnsAreUsed) {
  constexpr std::int64_t rows = 1500, columns = 96;
  const PhiloxStream random(9, "columns");
  std::vector<std::int8_t> spread, mean;
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    const double x = random.normal(static_cast<std::uint64_t>(i));
    const auto column = static_cast<double>(i % columns);
    spread.push_back(static_cast<std::int8_t>(std::nearbyint(x * (0.5 + column / 20))));
    mean.push_back(static_cast<std::int8_t>(std::nearbyint(2 * x + (column - 48) / 6)));
  }
  const std::vector<CodeMatrix> matrices{{rows, columns, 0}};
  EXPECT_LT(static_cast<double>(encode_codes(spread, matrices).size()), 0.97 * memoryless_bytes(spread));
  // 2 x normal numbers alone: the means cost next to nothing.
  const double without_means = memoryless_bytes(normal_codes(rows * columns, 2, 127, "means"));
  EXPECT_LT(static_cast<double>(encode_codes(mean, matrices).size()), 1.02 * without_means);
}

// The format is frozen: another machine, compiler or version of this program must write the same bytes.
TEST(EntropyCoder, BytesAreTheSameEverywhere) {
  std::vector<std::int8_t> codes;
  std::uint32_t state = 1;
  for (int i = 0; i < 60 * 70 + 33 * 5; ++i) {
    int sum = 0;
    for (int k = 0; k < 6; ++k) {
      state = state * 1664525U + 1013904223U;
      sum += static_cast<int>(state >> 28);
    }
    codes.push_back(static_cast<std::int8_t>((sum - 45) / (1 + i % 7)));
  }
  const std::vector<CodeMatrix> matrices{{60, 70, 0}, {33, 5, 6}};
  const std::string bytes = encode_codes(codes, matrices);
  EXPECT_EQ(sha256_hex(bytes), "ecbc3919a73dfb669c2b95bae63c6c2c92cd20d38fff8d56333e31f93fd885fa");
}

TEST(EntropyCoder, DamagedBytesAreRefusedOrReadButNeverHarm) {
  const std::vector<CodeMatrix> matrices{{40, 30, 0}, {7, 11, 1}};
  const std::vector<std::int8_t> codes = normal_codes(40 * 30 + 77, 3, 31, "damage");
  const std::string bytes = encode_codes(codes, matrices);
  int read = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x40);
    if (!refused(damaged, matrices)) ++read;
    EXPECT_TRUE(refused(std::string_view(bytes).substr(0, i), matrices)) << "cut at " << i;
  }
  // The end of a block must be the coder's first state: a change gets past that with a chance of 2^-31.
  EXPECT_EQ(read, 0);
  EXPECT_TRUE(refused(bytes + "x", matrices));
  EXPECT_TRUE(refused(bytes, {{40, 30, 0}}));
  EXPECT_TRUE(refused(bytes, {{40, 30, 0}, {7, 12, 1}}));
}

}  // namespace
}  // namespace mulligan::entropy_coder_test
