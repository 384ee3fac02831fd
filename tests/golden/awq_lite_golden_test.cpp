// Protected columns against the public reference (fixtures awq_lite/): which groups, codes and both scales.
#include <gtest/gtest.h>

#include <algorithm>
#include <mulligan/half.hpp>

#include "framework/artifact/quantize_model.h"
#include "plugins/quantizers/gptq/saliency.h"
#include "tests/golden/golden_fixture.h"
#include "tests/support/plugins.h"
#include "tests/support/quantize_matrix.h"

namespace mulligan::awq_lite_golden_test {
namespace {

// One case: its matrix, and what the plugin makes of it.
class Case {
 public:
  Case(const GoldenFixture& fixture, const std::string& name, const nlohmann::json& settings)
      : weight_(fixture.floats(name + ".W")),
        hessian_(fixture.floats(name + ".H")),
        rms_(fixture.floats(name + ".act_rms")),
        rows_(settings.at("rows")),
        columns_(settings.at("cols")),
        size_(settings.at("group")),
        bits_(settings.at("bits")),
        clip_(settings.at("clip_sigmas")),
        quantizer_(make_plugin<Quantizer>(
            MLG_QUANTIZER, "gptq",
            fmt::format("protected_groups = {}\nprotected_size = {}\nprotected_bits = {}",
                        settings.at("groups").get<int>(), size_, settings.at("bits_hi").get<int>()))) {}

  mlg_quantize_tensor tensor() const {
    return {"matrix", rows_, columns_, bits_, clip_, weight_.data(), rms_.data(), nullptr};
  }
  const Quantizer& quantizer() const { return *quantizer_; }
  std::int64_t size() const { return size_; }

  QuantizedMatrix quantize(const ProtectedColumns& fine) const {
    mlg_quantize_request request{};
    request.name = "matrix";
    request.weight = weight_.data();
    request.hessian = hessian_.data();
    request.rows = rows_;
    request.columns = columns_;
    request.bits = bits_;
    request.clip_sigmas = clip_;
    request.input_rms = rms_.data();
    request.protected_starts = fine.starts.data();
    request.protected_count = std::ssize(fine.starts);
    request.protected_size = fine.size;
    request.protected_bits = fine.bits;
    return quantize_matrix(*quantizer_, request);
  }
  // As an artifact holds and reads it back.
  QuantizedTensor stored(const QuantizedMatrix& made, ProtectedColumns fine) const {
    QuantizedTensor tensor{"matrix", {rows_, columns_}, TensorFormat::integer, bits_, {}, {}, {}};
    const std::vector<bool> mask = fine.mask(columns_);
    for (std::size_t i = 0; i < made.codes.size(); ++i)
      (mask[i % static_cast<std::size_t>(columns_)] ? fine.codes : tensor.codes).push_back(made.codes[i]);
    for (const float scale : made.scales) tensor.scales.push_back(sdk::half_bits(scale));
    for (const float scale : made.fine_scales) fine.scales.push_back(sdk::half_bits(scale));
    tensor.protected_columns = std::move(fine);
    return tensor;
  }

 private:
  std::vector<float> weight_, hessian_, rms_;
  std::int64_t rows_, columns_, size_;
  std::int32_t bits_;
  double clip_;
  std::unique_ptr<Quantizer> quantizer_;
};

TEST(AwqLiteGolden, ScoresChoiceCodesAndScales) {
  const GoldenFixture fixture("awq_lite");
  int compared = 0;
  for (const auto& [name, settings] : fixture.manifest().at("cases").items()) {
    SCOPED_TRACE(name);
    const Case matrix(fixture, name, settings);
    const std::vector<mlg_quantize_tensor> tensors{matrix.tensor()};

    const std::vector<double> scores = group_scores(tensors[0], matrix.size());
    const std::vector<double> theirs = fixture.doubles(name + ".score");
    ASSERT_EQ(scores.size(), theirs.size());
    for (std::size_t i = 0; i < scores.size(); ++i) EXPECT_NEAR(scores[i], theirs[i], 1e-6 * theirs[i]);

    const std::vector<std::int32_t> starts = fixture.ints(name + ".starts");
    const std::vector<ColumnGroup> groups =
        most_salient_groups(tensors, matrix.size(), settings.at("bits_hi"), settings.at("groups"));
    ASSERT_EQ(groups.size(), starts.size());
    for (std::size_t i = 0; i < groups.size(); ++i) EXPECT_EQ(groups[i].start, starts[i]);
    const ProtectedColumns fine = chosen_columns(matrix.quantizer(), tensors).at(0);
    EXPECT_TRUE(std::ranges::is_permutation(fine.starts, starts));

    const QuantizedMatrix plain = matrix.quantize({});
    EXPECT_EQ(plain.codes, fixture.codes(name + ".q_plain"));
    EXPECT_NEAR(plain.squared_error / settings.at("hessian_error_plain").get<double>(), 1, 1e-4);
    const QuantizedMatrix ours = matrix.quantize(fine);
    EXPECT_EQ(ours.codes, fixture.codes(name + ".q"));
    EXPECT_EQ(ours.scales, fixture.floats(name + ".scale"));
    EXPECT_EQ(ours.fine_scales, fixture.floats(name + ".scale_hi"));
    EXPECT_NEAR(ours.squared_error / settings.at("hessian_error").get<double>(), 1, 1e-4);
    const std::vector<float> read_back = dequantize(matrix.stored(ours, fine));
    const std::vector<double> expected = fixture.doubles(name + ".deq");
    ASSERT_EQ(read_back.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_FLOAT_EQ(read_back[i], static_cast<float>(expected[i]));
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

}  // namespace
}  // namespace mulligan::awq_lite_golden_test
