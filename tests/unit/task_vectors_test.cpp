// Task vectors: packing of bits, grids, quantised differences, and their merging.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "framework/core/error.h"
#include "lab/task_vectors/bit_packing.h"
#include "lab/task_vectors/task_vectors.h"
#include "tests/support/sentence.h"
#include "tests/unit/task_vectors_support.h"

namespace mulligan::task_vectors::task_vectors_test {
namespace {

using test_support::model_of;
using test_support::normal_numbers;

// Bit by bit, from the definition of the stream.
unsigned bit_of(const std::vector<std::byte>& packed, std::size_t bit) {
  return std::to_integer<unsigned>(packed[bit / 8]) >> bit % 8 & 1U;
}

TEST(BitPacking, EveryCodeLiesAtItsBitsAndComesBack) {
  for (int bits = 2; bits <= 8; ++bits) {
    for (const std::size_t count :
         std::vector<std::size_t>{0, 1, 2, 3, 5, 7, 8, 9, 15, 17, 63, 64, 65, 1001}) {
      SCOPED_TRACE(::testing::Message() << bits << " bits, " << count << " codes");
      std::vector<std::uint8_t> codes(count);
      for (std::size_t i = 0; i < count; ++i)
        codes[i] = static_cast<std::uint8_t>((i * 2654435761U >> 7) & ((1U << bits) - 1));
      const std::vector<std::byte> packed = pack_codes(codes, bits);
      const auto width = static_cast<std::size_t>(bits);
      ASSERT_EQ(packed.size(), (count * width + 7) / 8);
      for (std::size_t i = 0; i < count; ++i) {
        unsigned code = 0;
        for (std::size_t b = 0; b < width; ++b) code |= bit_of(packed, i * width + b) << b;
        ASSERT_EQ(code, codes[i]) << i;
      }
      EXPECT_EQ(unpack_codes(packed, count, bits), codes);
    }
  }
  EXPECT_THROW(pack_codes(std::vector<std::uint8_t>{4}, 2), std::logic_error);
  EXPECT_THROW(pack_codes({}, 9), std::logic_error);
  EXPECT_EQ(packed_bytes(std::size_t{1} << 60, 8), std::size_t{1} << 60);
}

double largest_error(const std::vector<double>& values, int bits) {
  const Grid grid = fit_grid(values, bits);
  EXPECT_TRUE(sound(grid));
  const std::vector<std::uint8_t> codes = quantise(values, grid, bits);
  double largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    largest = std::max(largest, std::abs(grid.step * (codes[i] - grid.zero) - values[i]) / grid.step);
  return largest;
}

// Also where 0 lies far outside of the values, and where values fall between two codes.
TEST(Grid, NoErrorIsAboveHalfAStep) {
  for (int bits = 2; bits <= 8; ++bits) {
    for (const double offset : {0.0, 1e-3, -7.0, 1e6}) {
      SCOPED_TRACE(::testing::Message() << bits << " bits around " << offset);
      std::vector<double> values;
      for (const float x : normal_numbers(4097, 1e-2, "grid")) values.push_back(offset + x);
      EXPECT_LE(largest_error(values, bits), 0.5 + 1e-6);
      EXPECT_GT(largest_error(values, bits), 0.3) << "a grid so fine would not have these bits";
    }
    // Ties at every code, and at both ends.
    std::vector<double> ties;
    for (int i = 0; i <= 2 * ((1 << bits) - 1); ++i) ties.push_back(0.5 * i - 3.5);
    EXPECT_LE(largest_error(ties, bits), 0.5 + 1e-12);
  }
}

TEST(Grid, AConstantTensorComesBackExactly) {
  for (const double value : {0.0, 1.5, -2.25e-30, 3e38, -1e-45}) {
    for (int bits = 2; bits <= 8; ++bits) {
      const std::vector<double> values(5, value);
      const Grid grid = fit_grid(values, bits);
      EXPECT_TRUE(sound(grid));
      std::vector<float> out(5, 0.0f);
      add_codes(quantise(values, grid, bits), grid, out);
      for (const float x : out) EXPECT_EQ(x, static_cast<float>(value));
    }
  }
  EXPECT_EQ(fit_grid({}, 4), Grid{});
}

// What no code can tell apart counts as constant: the result is still right to the last bits of an f32.
TEST(Grid, ARangeBelowTheArithmeticIsNone) {
  const std::vector<double> values{1.0, 1.0 + 0x1p-52};
  const Grid grid = fit_grid(values, 2);
  EXPECT_TRUE(sound(grid));
  std::vector<float> out(2, 0.0f);
  add_codes(quantise(values, grid, 2), grid, out);
  EXPECT_EQ(out, (std::vector<float>{1.0f, 1.0f}));
}

TEST(Grid, WhatAFileMayNotSay) {
  EXPECT_FALSE(sound({-1, 0}));
  EXPECT_FALSE(sound({NAN, 0}));
  EXPECT_FALSE(sound({1, 0.5}));
  EXPECT_FALSE(sound({1, HUGE_VAL}));
  EXPECT_FALSE(sound({1, 1e300}));
  EXPECT_FALSE(sound({1e37, 1000}));
  EXPECT_FALSE(sound({HUGE_VAL, 0}));
}

// A synthetic case: one tensor of 65,536 weights (standard deviation 0.02), eight tasks of a shared
// difference (5e-4) and one of their own (3e-4).
class Synthetic : public ::testing::Test {
 protected:
  static constexpr std::size_t count = 65536, tasks = 8;
  void SetUp() override {
    const std::vector<float> start = normal_numbers(count, 0.02, "base"),
                             shared = normal_numbers(count, 5e-4, "shared");
    base_ = model_of("base", {{"w", start}});
    for (std::size_t t = 0; t < tasks; ++t) {
      const std::vector<float> own = normal_numbers(count, 3e-4, "task/" + std::to_string(t));
      std::vector<float> tuned(count);
      for (std::size_t i = 0; i < count; ++i) tuned[i] = start[i] + shared[i] + own[i];
      models_.push_back(model_of("t" + std::to_string(t), {{"w", tuned}}));
    }
  }
  // sum |unpacked - tuned|^2 / sum |tuned - base|^2.
  double relative_error(const TaskVectors& vectors, const Model& from) const {
    double wrong = 0, all = 0;
    const std::vector<float> start = base_.values(0);
    for (std::size_t t = 0; t < tasks; ++t) {
      const std::vector<float> tuned = models_[t].values(0), out = unpacked(vectors, "", from, t).values(0);
      for (std::size_t i = 0; i < count; ++i) {
        wrong += std::pow(static_cast<double>(out[i]) - tuned[i], 2);
        all += std::pow(static_cast<double>(tuned[i]) - start[i], 2);
      }
    }
    return wrong / all;
  }
  double tvq(int bits) const { return relative_error(pack(base_, models_, {bits, 0}), base_); }
  Model base_;
  std::vector<Model> models_;
};

// The expected figures are of other random numbers, whose extremes set the steps: within a third.
TEST_F(Synthetic, TvqHasTheErrorsThatAreExpected) {
  for (const auto& [bits, error] :
       {std::pair{8, 9.3e-5}, std::pair{4, 0.027}, std::pair{3, 0.124}, std::pair{2, 0.60}}) {
    EXPECT_GT(tvq(bits), error * 0.67) << bits;
    EXPECT_LT(tvq(bits), error * 1.33) << bits;
  }
}

TEST_F(Synthetic, RtvqIsBetterThanTvqOfTheSameSize) {
  const TaskVectors rtvq = pack(base_, models_, {2, 3});
  const double error = relative_error(rtvq, base_);
  EXPECT_GT(error, 0.178 * 0.67);
  EXPECT_LT(error, 0.178 * 1.33);
  // Between TVQ of 2 and 3 bits in size and much nearer to the latter's error.
  EXPECT_LT(error, tvq(2) / 2);
  EXPECT_GT(error, tvq(3));
  EXPECT_EQ(rtvq.tensor_bytes(), tasks * (count * 2 / 8 + 16) + count * 3 / 8 + 16);
  // Without error correction: the offset of the exact mean, added to the quantised one.
  double wrong = 0, all = 0;
  const std::vector<float> start = base_.values(0);
  std::vector<float> near = start;
  add_codes(unpack_codes(rtvq.mean[0].packed, count, 3), rtvq.mean[0].grid, near);
  std::vector<std::vector<float>> tuned;
  for (const Model& model : models_) tuned.push_back(model.values(0));
  std::vector<double> mean(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (const auto& values : tuned) mean[i] += static_cast<double>(values[i]) / tasks;
  }
  for (const auto& values : tuned) {
    std::vector<double> offset(count);
    for (std::size_t i = 0; i < count; ++i) offset[i] = values[i] - mean[i];
    const Grid grid = fit_grid(offset, 2);
    std::vector<float> out = near;
    add_codes(quantise(offset, grid, 2), grid, out);
    for (std::size_t i = 0; i < count; ++i) {
      wrong += std::pow(static_cast<double>(out[i]) - values[i], 2);
      all += std::pow(static_cast<double>(values[i]) - start[i], 2);
    }
  }
  EXPECT_GT(wrong / all, 1.1 * error);
  EXPECT_LT(wrong / all, 0.234 * 1.33);
}

TEST_F(Synthetic, TheLargestErrorIsThatOfTheUnpackedWeights) {
  for (const int base_bits : {0, 3}) {
    const TaskVectors vectors = pack(base_, models_, {3, base_bits});
    for (std::size_t t = 0; t < tasks; ++t) {
      const std::vector<float> tuned = models_[t].values(0), out = unpacked(vectors, "", base_, t).values(0);
      double largest = 0;
      for (std::size_t i = 0; i < count; ++i)
        largest = std::max(largest, std::abs(static_cast<double>(out[i]) - tuned[i]));
      EXPECT_EQ(vectors.tasks[t].largest_error, largest);
      // Half a step, and half of the last bit of weights below 0.25.
      EXPECT_LE(largest, vectors.tasks[t].tensors[0].grid.step / 2 + 0x1p-27);
    }
  }
}

TEST(Pack, TensorsOfOddSizesEachHaveTheirOwnGrid) {
  const Model base = model_of("base", {{"a", {1, 2, 3}}, {"b", {}}, {"c", {5}}});
  const Model tuned = model_of("tuned", {{"a", {1.5f, 2, 2.75f}}, {"b", {}}, {"c", {5.125f}}});
  for (int bits = 2; bits <= 8; ++bits) {
    const TaskVectors vectors = pack(base, {tuned}, {bits, 0});
    const Model out = unpacked(vectors, "", base, 0);
    const std::vector<float> a = out.values(0), expected = {1.5f, 2, 2.75f};
    ASSERT_EQ(a.size(), expected.size());
    for (std::size_t i = 0; i < a.size(); ++i)
      EXPECT_LE(std::abs(a[i] - expected[i]), 0.75 / ((1 << bits) - 1) / 2 + 1e-6) << bits;
    // A range of three quarters has steps that divide a quarter where 3 divides 2^bits - 1.
    if (bits % 2 == 0) {
      EXPECT_EQ(a, expected);
    }
    EXPECT_TRUE(out.values(1).empty());
    EXPECT_EQ(out.values(2), std::vector<float>{5.125f});
    EXPECT_EQ(vectors.tensor_bytes(), (3 * static_cast<std::size_t>(bits) + 7) / 8 + 1 + 3 * 16);
  }
}

TEST(Pack, RefusesWhatDoesNotFit) {
  const Model base = model_of("base", {{"a", {1, 2}}}), tuned = model_of("t", {{"a", {1, 3}}});
  const auto refusal = [&](const std::vector<Model>& models, PackOptions options) {
    return sentence_of([&] { pack(base, models, options); });
  };
  EXPECT_TRUE(contains(refusal({tuned}, {1, 0}), "bits = 1"));
  EXPECT_TRUE(contains(refusal({tuned}, {4, 9}), "base bits = 9"));
  EXPECT_TRUE(contains(refusal({}, {4, 0}), "one fine-tuned model"));
  EXPECT_TRUE(contains(refusal({tuned, tuned}, {4, 0}), "named 't'"));
  EXPECT_TRUE(contains(refusal({model_of("u", {{"a", {1, 2, 3}}})}, {4, 0}), "'a' [2]"));
  EXPECT_TRUE(contains(refusal({model_of("u", {{"a", {1, 2}}, {"b", {1}}})}, {4, 0}), "'b' [1]"));
  EXPECT_TRUE(contains(refusal({model_of("u", {{"b", {1, 2}}})}, {4, 0}), "'b' [2]"));
  const float most = 3.4028235e38f;
  const Model low = model_of("low", {{"a", {-most, most, 0}}}),
              high = model_of("h", {{"a", {most, -most, 1}}});
  EXPECT_TRUE(refuses([&] { pack(low, {high}, {8, 0}); }, "would not be finite"));
}

TEST(Unpack, AnotherBaseIsRefused) {
  const Model base = model_of("base", {{"a", {1, 2}}});
  const TaskVectors vectors = pack(base, {model_of("t", {{"a", {1, 3}}})}, {4, 0});
  const Model other = model_of("other", {{"a", {1, 2.5f}}});
  const std::string sentence = sentence_of([&] { unpacked(vectors, "v.safetensors", other, 0); });
  EXPECT_TRUE(contains(sentence, "made of differences from 'base'", "'other' has"));
  EXPECT_TRUE(refuses([&] { static_cast<void>(vectors.index_of("x")); }, "there are: t"));
}

using test_support::NamedValues;
// A base of two tensors and three models; the first tensor's differences are larger.
struct Family {
  std::vector<double> base;              // both tensors side by side
  std::vector<std::vector<double>> tau;  // by model
  Model base_model;
  std::vector<Model> models;
};

constexpr std::size_t first = 13, second = 30;

Model split(const std::string& name, const std::vector<float>& all) {
  return model_of(name, {{"a", {all.begin(), all.begin() + first}}, {"b", {all.begin() + first, all.end()}}});
}

Family family() {
  Family f;
  const std::vector<float> start = normal_numbers(first + second, 1, "merge/base");
  f.base.assign(start.begin(), start.end());
  f.base_model = split("base", start);
  for (int t = 0; t < 3; ++t) {
    std::vector<float> tuned = start;
    const std::vector<float> change = normal_numbers(first + second, 0.1, "merge/" + std::to_string(t));
    for (std::size_t i = 0; i < tuned.size(); ++i) tuned[i] += change[i] * (i < first ? 3.0f : 1.0f);
    f.tau.emplace_back();
    for (std::size_t i = 0; i < tuned.size(); ++i)
      f.tau.back().push_back(static_cast<double>(tuned[i]) - start[i]);
    f.models.push_back(split("m" + std::to_string(t), tuned));
  }
  return f;
}

std::vector<float> merged(const Model& base, const std::vector<Model>& models, const MergeOptions& options) {
  std::vector<float> all;
  for (const std::vector<float>& values : merge(base, models, options))
    all.insert(all.end(), values.begin(), values.end());
  return all;
}

TEST(Merge, TaskArithmeticAddsTheScaledSum) {
  const Family f = family();
  for (const double scale : {0.0, 0.3, -1.0, 2.5}) {
    const auto out = merged(f.base_model, f.models, {MergeMethod::task_arithmetic, scale, 1});
    for (std::size_t i = 0; i < f.base.size(); ++i)
      EXPECT_NEAR(out[i], f.base[i] + scale * (f.tau[0][i] + f.tau[1][i] + f.tau[2][i]), 1e-6);
  }
}

TEST(Merge, AverageOfScaleOneIsTheMeanOfTheModels) {
  const Family f = family();
  const auto out = merged(f.base_model, f.models, {MergeMethod::average, 1, 1});
  for (std::size_t i = 0; i < f.base.size(); ++i)
    EXPECT_NEAR(out[i], f.base[i] + (f.tau[0][i] + f.tau[1][i] + f.tau[2][i]) / 3, 1e-6);
}

// The three stages of the paper on the whole vector, each written out.
TEST(Merge, TiesTrimsElectsAndMerges) {
  const Family f = family();
  for (const double keep : {0.2, 0.5, 1.0}) {
    auto trimmed = f.tau;
    for (auto& tau : trimmed) {
      std::vector<double> sizes;
      for (const double x : tau) sizes.push_back(std::abs(x));
      std::ranges::sort(sizes, std::greater<>{});
      const double border = sizes[static_cast<std::size_t>(keep * static_cast<double>(sizes.size())) - 1];
      for (double& x : tau) x = std::abs(x) >= border ? x : 0;
    }
    const auto out = merged(f.base_model, f.models, {MergeMethod::ties, 0.7, keep});
    int zeros = 0;
    for (std::size_t i = 0; i < f.base.size(); ++i) {
      const double sum = trimmed[0][i] + trimmed[1][i] + trimmed[2][i];
      double agreed = 0;
      int count = 0;
      for (const auto& tau : trimmed) {
        if (tau[i] * sum > 0) agreed += tau[i], ++count;
      }
      zeros += count == 0;
      EXPECT_NEAR(out[i], f.base[i] + 0.7 * (count ? agreed / count : 0), 1e-6) << keep << " " << i;
    }
    EXPECT_EQ(zeros == 0, keep == 1.0);
  }
}

// 1 and -1 cancel: the sign is the one that most weights have.
TEST(Merge, TiesGivesADrawToTheMajority) {
  const Model base = model_of("base", {{"a", {0, 0, 0}}});
  for (const float side : {1.0f, -1.0f}) {
    const auto out = merged(
        base, {model_of("x", {{"a", {1, side, 2 * side}}}), model_of("y", {{"a", {-1, side, 4 * side}}})},
        {MergeMethod::ties, 1, 1});
    EXPECT_EQ(out, (std::vector<float>{side, side, 3 * side}));
  }
}

TEST(Merge, TiesOfAShareBelowOneWeightKeepsNothing) {
  const Model base = model_of("base", {{"a", {1, 2}}});
  const auto out = merged(base, {model_of("x", {{"a", {5, 6}}})}, {MergeMethod::ties, 1, 0.4});
  EXPECT_EQ(out, (std::vector<float>{1, 2}));
}

TEST(Merge, RefusesWhatDoesNotFit) {
  const Model base = model_of("base", {{"a", {1, 2}}}), tuned = model_of("t", {{"a", {3e38f, 3}}});
  const auto refusal = [&](const std::vector<Model>& models, const MergeOptions& options) {
    return sentence_of([&] { merged(base, models, options); });
  };
  EXPECT_TRUE(contains(refusal({}, {}), "nothing to merge"));
  EXPECT_TRUE(contains(refusal({tuned}, {MergeMethod::average, NAN, 1}), "scale"));
  EXPECT_TRUE(contains(refusal({tuned}, {MergeMethod::ties, 1, 0}), "keep"));
  EXPECT_TRUE(contains(refusal({tuned}, {MergeMethod::ties, 1, 1.5}), "keep"));
  EXPECT_TRUE(contains(refusal({model_of("u", {{"b", {1, 2}}})}, {}), "'b' [2]"));
  EXPECT_TRUE(contains(refusal({tuned}, {MergeMethod::average, 2, 1}), "smaller scale"));
}

}  // namespace
}  // namespace mulligan::task_vectors::task_vectors_test
