// Corrections of low rank against the public reference (fixture folder lqer/).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mulligan/half.hpp>

#include "framework/artifact/quantize_model.h"
#include "plugins/quantizers/gptq/low_rank.h"
#include "tests/golden/golden_fixture.h"

namespace mulligan::lqer_golden_test {
namespace {

std::vector<double> wide(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

// What a correction adds to a matrix of zeros, as scoring reads it back.
std::vector<float> read_back(const LowRankCodes& codes, std::int64_t rows, std::int64_t columns) {
  QuantizedTensor tensor{"matrix", {rows, columns}, TensorFormat::integer, 6, {}, {}, {}};
  tensor.codes.resize(static_cast<std::size_t>(rows * columns));
  tensor.scales.resize(static_cast<std::size_t>(rows));
  LowRankCorrection& correction = tensor.correction;
  correction = {codes.rank, codes.left_group, codes.right_group, codes.left, codes.right, {}, {}};
  for (const float scale : codes.left_scales) correction.left_scales.push_back(sdk::half_bits(scale));
  for (const float scale : codes.right_scales) correction.right_scales.push_back(sdk::half_bits(scale));
  return dequantize(tensor);
}

double remaining_error(const std::vector<double>& error, const std::vector<float>& correction) {
  double squares = 0;
  for (std::size_t i = 0; i < error.size(); ++i) squares += std::pow(error[i] - correction[i], 2);
  return std::sqrt(squares);
}

class LqerGolden : public testing::Test {
 protected:
  // Calls body(name, settings, rows, columns, rank, group) for every case.
  template <typename Body>
  void for_cases(Body&& body) {
    int compared = 0;
    for (const auto& [name, settings] : fixture_.manifest().at("cases").items()) {
      SCOPED_TRACE(name);
      const nlohmann::json& sizes = settings;
      body(name, sizes, sizes.at("rows").get<std::int64_t>(), sizes.at("cols").get<std::int64_t>(),
           sizes.at("rank").get<std::int64_t>(), sizes.at("group").get<std::int64_t>());
      ++compared;
    }
    EXPECT_GT(compared, 0);
  }
  GoldenFixture fixture_{"lqer"};
};

TEST_F(LqerGolden, CodesAndScalesOfTheGivenFactors) {
  for_cases([&](const std::string& name, const nlohmann::json&, auto rows, auto columns, auto rank,
                auto group) {
    LowRankFactors factors{rank, wide(fixture_.floats(name + ".A")), wide(fixture_.floats(name + ".B")), {}};
    const LowRankCodes ours = quantize_factors(factors, rows, columns, group);
    EXPECT_EQ(ours.left, fixture_.codes(name + ".qA"));
    EXPECT_EQ(ours.right, fixture_.codes(name + ".qB"));
    EXPECT_EQ(ours.left_scales, fixture_.floats(name + ".sA"));
    EXPECT_EQ(ours.right_scales, fixture_.floats(name + ".sB"));
    const std::vector<float> correction = read_back(ours, rows, columns);
    const std::vector<double> theirs = fixture_.doubles(name + ".delta");
    ASSERT_EQ(correction.size(), theirs.size());
    for (std::size_t i = 0; i < theirs.size(); ++i) EXPECT_NEAR(correction[i], theirs[i], 1e-6);
  });
}

TEST_F(LqerGolden, OurDecompositionIsTheirs) {
  for_cases(
      [&](const std::string& name, const nlohmann::json& settings, auto rows, auto columns, auto rank, auto) {
        const std::vector<double> error = wide(fixture_.floats(name + ".E"));
        const LowRankFactors ours = low_rank_factors(error, rows, columns, rank);
        const std::vector<double> values = fixture_.doubles(name + ".sv");
        ASSERT_EQ(ours.singular_values.size(), values.size());
        for (std::size_t i = 0; i < values.size(); ++i)
          EXPECT_NEAR(ours.singular_values[i], values[i], 1e-6 * values[i]);
        // Multiplication cancels signs; the fixture's factors are rounded to f32.
        const std::vector<float> a = fixture_.floats(name + ".A"), b = fixture_.floats(name + ".B");
        double squares = 0;
        for (std::int64_t i = 0; i < rows; ++i) {
          for (std::int64_t j = 0; j < columns; ++j) {
            double theirs = 0, product = 0;
            for (std::int64_t k = 0; k < rank; ++k) {
              const auto left = static_cast<std::size_t>(i * rank + k);
              const auto right = static_cast<std::size_t>(k * columns + j);
              theirs += static_cast<double>(a[left]) * b[right];
              product += ours.left[left] * ours.right[right];
            }
            EXPECT_NEAR(product, theirs, 1e-5 * values[0]);
            squares += std::pow(error[static_cast<std::size_t>(i * columns + j)] - product, 2);
          }
        }
        EXPECT_NEAR(std::sqrt(squares), settings.at("norm_after_exact_rank").get<double>(), 1e-6 * values[0]);
      });
}

TEST_F(LqerGolden, TheSignsAreTheBestOfAllChoices) {
  for_cases([&](const std::string& name, const nlohmann::json& settings, auto rows, auto columns, auto rank,
                auto group) {
    const std::vector<double> error = wide(fixture_.floats(name + ".E"));
    const std::vector<double> by_sign = fixture_.doubles(name + ".error_by_sign");
    const double best = *std::ranges::min_element(by_sign);
    LowRankFactors factors{rank, wide(fixture_.floats(name + ".A")), wide(fixture_.floats(name + ".B")), {}};
    const LowRankCodes given = with_best_signs(error, factors, rows, columns, group);
    EXPECT_NEAR(remaining_error(error, read_back(given, rows, columns)), best, 1e-5 * best);
    const LowRankCodes own =
        with_best_signs(error, low_rank_factors(error, rows, columns, rank), rows, columns, group);
    EXPECT_NEAR(remaining_error(error, read_back(own, rows, columns)), best, 1e-5 * best);
    EXPECT_LT(best, settings.at("norm_E").get<double>());
  });
}

TEST_F(LqerGolden, TensorsAreChosenByTheNormOfTheirError) {
  std::vector<std::vector<float>> errors;
  std::vector<mlg_quantize_tensor> tensors;
  std::vector<double> norms;
  std::vector<float> zeros(1 << 16);
  for_cases([&](const std::string& name, const nlohmann::json& settings, auto, auto, auto, auto) {
    errors.push_back(fixture_.floats(name + ".E"));
    norms.push_back(settings.at("norm_E"));
  });
  for (const std::vector<float>& error : errors)
    tensors.push_back(
        {"t", 1, static_cast<std::int64_t>(error.size()), 6, 13, error.data(), zeros.data(), zeros.data()});
  tensors.push_back({"exact", 1, 100, 6, 13, zeros.data(), zeros.data(), zeros.data()});
  const std::vector<std::int64_t> chosen = largest_errors(tensors, 100);
  ASSERT_EQ(chosen.size(), norms.size()) << "a tensor without error needs no correction";
  for (std::size_t i = 1; i < chosen.size(); ++i)
    EXPECT_GE(norms[static_cast<std::size_t>(chosen[i - 1])], norms[static_cast<std::size_t>(chosen[i])]);
  EXPECT_EQ(largest_errors(tensors, 2).size(), 2U);
}

}  // namespace
}  // namespace mulligan::lqer_golden_test
