// The first values of parameters: their draws, and the rows of [[init]] that choose their laws.
#include "framework/model/initialise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "framework/core/philox.h"
#include "framework/model/orthogonal.h"
#include "tests/support/sentence.h"
#include "tests/support/small_config.h"

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

  for (const bool tall : {true, false}) {
    const ParameterSpec spec = tall ? spec_of("tall", {3, 40, 12}, Initial::orthogonal, 0)
                                    : spec_of("wide", {3, 12, 40}, Initial::orthogonal, 0);
    const std::vector<float> values = initial_values(spec, 42);
    for (std::size_t entry = 0; entry < 3; ++entry) {
      const PhiloxStream stream(42, "init/" + spec.name + "/" + std::to_string(entry));
      std::vector<double> vectors(480);
      for (std::size_t i = 0; i < vectors.size(); ++i) vectors[i] = stream.normal(i);
      make_orthonormal_plainly(vectors, 12, 40);
      for (std::size_t i = 0; i < vectors.size(); ++i)
        ASSERT_EQ(values[entry * 480 + (tall ? i % 40 * 12 + i / 40 : i)], static_cast<float>(vectors[i]))
            << spec.name;
    }
  }
}

const std::vector<std::string> modded = {"model.family=modded", "model.layers=4", "model.width=64",
                                         "model.heads=2"};

std::vector<float> drawn(const std::string& rows, const std::string& parameter,
                         const std::vector<std::string>& model = modded) {
  const RunConfig config = small_config(model, rows).config;
  std::vector<ParameterLayout> layouts = parameter_layouts(config.model, MLG_F32);
  apply_initial_rows(config.model, config.init.values, layouts);
  for (const ParameterLayout& layout : layouts) {
    if (layout.spec.name == parameter) return initial_values(layout.spec, 7);
  }
  ADD_FAILURE() << "there is no " << parameter;
  return {};
}

std::string row(const std::string& match, const std::string& law, double scale,
                const std::string& more = "") {
  return fmt::format("[[init.values]]\nmatch = \"{}\"\nlaw = \"{}\"\nscale = {}\n{}", match, law, scale,
                     more);
}

double deviation(const std::vector<float>& values) {
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * value;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

TEST(InitialRows, TheFamilysOwnAreThoseOfTheBaseline) {
  EXPECT_NEAR(deviation(drawn("", "embed.weight")), 1, 0.05);
  EXPECT_NEAR(deviation(drawn("", "blocks.1.attn.q.weight")), std::sqrt(0.33 / 64), 0.005);
  for (const char* zero :
       {"proj.weight", "proj.bias", "blocks.0.attn.proj.weight", "blocks.3.mlp.proj.weight"})
    EXPECT_EQ(deviation(drawn("", zero)), 0) << zero;
  for (const float gain : drawn("", "blocks.2.norm1.gains")) EXPECT_EQ(gain, 1);
}

TEST(InitialRows, TheFirstRowThatMatchesDecides) {
  const std::string rows = row("blocks.1.mlp.fc.weight", "normal", 0.5) + row("*.fc.*", "constant", -2);
  EXPECT_NEAR(deviation(drawn(rows, "blocks.1.mlp.fc.weight")), 0.5, 0.01);
  for (const float value : drawn(rows, "blocks.1.mlp.fc.bias")) EXPECT_EQ(value, -2);
  EXPECT_NEAR(deviation(drawn(rows, "blocks.0.attn.q.weight")), std::sqrt(0.33 / 64), 0.005);
}

// Of a bias the inputs are those of its matrix: 64 of mlp.fc, 256 of mlp.proj.
TEST(InitialRows, ScalesByTheInputsOfTheMatrix) {
  EXPECT_NEAR(deviation(drawn(row("*.mlp.proj.weight", "normal_by_inputs", 3), "blocks.0.mlp.proj.weight")),
              3.0 / 16, 0.005);
  const std::vector<float> biases = drawn(row("*.fc.bias", "uniform_by_inputs", 1), "blocks.0.mlp.fc.bias");
  for (const float value : biases) EXPECT_LE(std::abs(value), 1.0F / 8);
  EXPECT_NEAR(deviation(biases), 1 / std::sqrt(3.0) / 8, 0.01);
  EXPECT_NEAR(deviation(drawn(row("embed.weight", "uniform", 2), "embed.weight")), 2 / std::sqrt(3.0), 0.03);
}

// Of the family record, whose matrices lie in banks: q's part of qo_bank is drawn, the projection stays zero.
TEST(InitialRows, ReachTheMatricesOfABank) {
  const std::vector<std::string> record = {"model.layers=4", "model.width=64", "model.heads=2"};
  const auto bank = [&](const std::string& rows, const std::string& name) {
    return drawn(rows, name, record);
  };
  const std::string rows = row("blocks.*.attn.c_[qkv].weight", "uniform_by_inputs", 1) +
                           row("blocks.2.attn.proj.weight", "constant", 3);
  const std::vector<float> qo = bank(rows, "qo_bank"), kv = bank(rows, "kv_bank");
  const std::size_t matrix = 64 * 64;
  EXPECT_NEAR(deviation({qo.begin(), qo.begin() + 4 * matrix}), 1 / std::sqrt(3.0) / 8, 1e-3);
  EXPECT_LE(std::abs(*std::ranges::max_element(kv)), 1.0F / 8);
  for (std::size_t i = 4 * matrix; i < qo.size(); ++i) EXPECT_EQ(qo[i], i / matrix == 6 ? 3 : 0) << i;
  // No two matrices are alike, and those that no row names are the family's own.
  EXPECT_NE(std::vector(kv.begin(), kv.begin() + 64),
            std::vector(kv.begin() + kv.size() / 2, kv.begin() + kv.size() / 2 + 64));
  EXPECT_EQ(bank(rows, "mlp_up_bank"), bank("", "mlp_up_bank"));
  const std::vector<float> own = bank("", "kv_bank"),
                           only_v = bank(row("*.c_v.weight", "normal", 1), "kv_bank");
  EXPECT_TRUE(std::equal(own.begin(), own.begin() + own.size() / 2, only_v.begin()));
  // A row for the whole bank and rows for all of its matrices draw the same numbers.
  EXPECT_EQ(bank(row("kv_bank", "normal", 1), "kv_bank"),
            bank(row("*.c_[kv].weight", "normal", 1), "kv_bank"));
}

TEST(InitialRows, SignsAreThoseOfALayer) {
  const std::string rows = row("*.norm1.gains", "signs", -0.125) + row("*.norm2.gains", "signs", 0.125);
  const std::vector<float> first = drawn(rows, "blocks.1.norm1.gains"),
                           second = drawn(rows, "blocks.1.norm2.gains");
  bool both = false;
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(std::abs(first[i] - 1), 0.125F);
    EXPECT_EQ(first[i] + second[i], 2);
    both = both || first[i] != first[0];
  }
  EXPECT_TRUE(both);
  EXPECT_NE(drawn(rows, "blocks.0.norm1.gains"), first);
}

TEST(InitialRows, SignsOfAPairOfLayersBalanceInEachHead) {
  const std::string rows = row("*.norm1.gains", "signs", 0.125, "balanced_from = 2\n");
  const std::vector<float> first = drawn(rows, "blocks.2.norm1.gains"),
                           second = drawn(rows, "blocks.3.norm1.gains");
  for (std::size_t head = 0; head < 2; ++head) {
    int plus = 0, other = 0;
    for (std::size_t i = 32 * head; i < 32 * (head + 1); ++i) {
      plus += first[i] > 1 ? 1 : 0;
      other += second[i] > 1 ? 1 : 0;
    }
    EXPECT_EQ(plus + other, 32);
    EXPECT_GE(plus, 8) << "half way to 16";
    EXPECT_LE(plus, 24);
  }
  EXPECT_NE(first, second);
  // Layers before the pairs are as without them.
  EXPECT_EQ(drawn(rows, "blocks.1.norm1.gains"),
            drawn(row("*.norm1.gains", "signs", 0.125), "blocks.1.norm1.gains"));
}

TEST(InitialRows, RowsThatDoNothingAndLawsThatDoNotFitAreRefused) {
  const auto refusal = [](const std::string& rows) -> std::string {
    return refusal_of([&] { drawn(rows, "embed.weight"); });
  };
  EXPECT_TRUE(contains(refusal(row("*.gate", "normal", 1)), "first to match no parameter"));
  EXPECT_TRUE(contains(refusal(row("*", "normal", 1) + row("*.fc.*", "normal", 1)), "\"*.fc.*\""));
  EXPECT_TRUE(contains(refusal(row("embed.weight", "signs", 1)), "'embed.weight' has no layer"));
  EXPECT_TRUE(contains(refusal(row("*", "uniform", -1)), "leave out the sign"));
  EXPECT_TRUE(contains(refusal("[init]\nfrom = \"w\"\n" + row("*", "normal", 1)), "leave one of them out"));
}

}  // namespace
}  // namespace mulligan::initial_values_test
