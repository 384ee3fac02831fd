// Initial values against their formulas, written down plainly: equal to the bit for any number of threads.
#include "framework/model/initialise.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "framework/core/philox.h"
#include "framework/model/orthogonal.h"

namespace mulligan::initial_values_test {
namespace {

// One lane for each index modulo 8, the rest after them, then the lanes in their order.
double dot(const double* a, const double* b, std::size_t length) {
  std::array<double, 8> lanes{};
  const std::size_t whole = length / 8 * 8;
  for (std::size_t i = 0; i < whole; ++i) lanes[i % 8] += a[i] * b[i];
  double total = 0;
  for (std::size_t i = whole; i < length; ++i) total += a[i] * b[i];
  for (const double lane : lanes) total += lane;
  return total;
}

// Modified Gram-Schmidt, twice.
void make_orthonormal_plainly(std::vector<double>& vectors, std::size_t count, std::size_t length) {
  for (std::size_t i = 0; i < count; ++i) {
    double* row = vectors.data() + i * length;
    for (int sweep = 0; sweep < 2; ++sweep) {
      for (std::size_t j = 0; j < i; ++j) {
        const double* earlier = vectors.data() + j * length;
        const double overlap = dot(row, earlier, length);
        for (std::size_t k = 0; k < length; ++k) row[k] -= overlap * earlier[k];
      }
    }
    const double inverse = 1.0 / std::sqrt(dot(row, row, length));
    for (std::size_t k = 0; k < length; ++k) row[k] *= inverse;
  }
}

std::vector<double> normal_numbers(std::size_t count, const char* purpose) {
  const PhiloxStream stream(3, purpose);
  std::vector<double> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = stream.normal(i);
  return numbers;
}

TEST(Orthonormal, SameBitsAsThePlainAlgorithm) {
  for (const auto& [count, length] : {std::pair<std::size_t, std::size_t>{1, 1},
                                      {1, 9},
                                      {3, 3},
                                      {4, 8},
                                      {5, 7},
                                      {8, 8},
                                      {13, 100},
                                      {37, 53},
                                      {64, 64},
                                      {30, 256}}) {
    std::vector<double> fast = normal_numbers(count * length, "orthonormal"), plain = fast;
    make_orthonormal(fast, count, length);
    make_orthonormal_plainly(plain, count, length);
    EXPECT_EQ(fast, plain) << count << " rows of " << length;
  }
}

ParameterSpec spec_of(const char* name, std::initializer_list<std::int64_t> dims, Initial kind,
                      double value) {
  ParameterSpec spec;
  spec.name = name;
  spec.type = TensorType(MLG_F32, dims);
  spec.initial = {{0, *dims.begin(), kind, value}};
  return spec;
}

TEST(InitialValues, DoNotDependOnThreadsOrOnOtherParameters) {
  const std::vector<ParameterSpec> specs = {spec_of("table", {700, 300}, Initial::normal, 0.5),  // two pieces
                                            spec_of("wide", {5, 12, 40}, Initial::orthogonal, 0),
                                            spec_of("tall", {3, 40, 12}, Initial::orthogonal, 0),
                                            spec_of("gain", {7}, Initial::constant, 1.5)};
  const auto one = initial_values(specs, 42, 1);
  ASSERT_EQ(one.size(), specs.size());
  for (const int threads : {2, 3, 0}) EXPECT_EQ(initial_values(specs, 42, threads), one);
  for (std::size_t i = 0; i < specs.size(); ++i) EXPECT_EQ(initial_values(specs[i], 42), one[i]);
}

TEST(InitialValues, AreThoseOfTheirStreams) {
  const std::vector<float> table = initial_values(spec_of("table", {700, 300}, Initial::normal, 0.5), 42);
  const PhiloxStream numbers(42, "init/table");
  for (std::size_t i = 0; i < table.size(); ++i)
    ASSERT_EQ(table[i], static_cast<float>(0.5 * numbers.normal(i))) << i;

  const std::vector<float> tall = initial_values(spec_of("tall", {3, 40, 12}, Initial::orthogonal, 0), 42);
  for (std::size_t entry = 0; entry < 3; ++entry) {
    const PhiloxStream stream(42, "init/tall/" + std::to_string(entry));
    std::vector<double> columns(480);
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i] = stream.normal(i);
    make_orthonormal_plainly(columns, 12, 40);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::size_t column = i / 40, row = i % 40;
      ASSERT_EQ(tall[entry * 480 + row * 12 + column], static_cast<float>(columns[i]));
    }
  }
}

}  // namespace
}  // namespace mulligan::initial_values_test
