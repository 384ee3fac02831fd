// Protected columns against the public reference (fixtures awq_lite/): which groups, codes and both scales.
#include <gtest/gtest.h>

#include <algorithm>
#include <mulligan/half.hpp>

#include "framework/artifact/quantize_model.h"
#include "framework/plugin/quantizer.h"
#include "plugins/quantizers/gptq/saliency.h"
#include "tests/golden/golden_fixture.h"
#include "tests/support/plugins.h"

namespace mulligan::awq_lite_golden_test {
namespace {

void serial_for(std::int64_t count, std::int64_t, void (*body)(void*, std::int64_t, std::int64_t),
                void* context) {
  body(context, 0, count);
}

std::vector<std::int8_t> codes(const GoldenFixture& fixture, const std::string& name) {
  std::vector<std::int8_t> result;
  for (const std::uint8_t byte : fixture.bytes(name)) result.push_back(static_cast<std::int8_t>(byte));
  return result;
}

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

  void quantize(const ProtectedColumns& fine) {
    codes.resize(weight_.size());
    scales.resize(static_cast<std::size_t>(rows_));
    fine_scales.resize(scales.size());
    const mlg_quantize_request request{"matrix",
                                       weight_.data(),
                                       hessian_.data(),
                                       rows_,
                                       columns_,
                                       bits_,
                                       clip_,
                                       serial_for,
                                       rms_.data(),
                                       fine.starts.data(),
                                       static_cast<std::int64_t>(fine.starts.size()),
                                       fine.size,
                                       fine.bits};
    mlg_quantize_result result{codes.data(), scales.data(), 0, fine_scales.data()};
    quantizer_->quantize(request, result);
    squared_error = result.squared_error;
  }
  // As an artifact holds and reads it back.
  QuantizedTensor stored(ProtectedColumns fine) const {
    QuantizedTensor tensor{"matrix", {rows_, columns_}, TensorFormat::integer, bits_, {}, {}, {}};
    const std::vector<bool> mask = fine.mask(columns_);
    for (std::size_t i = 0; i < codes.size(); ++i)
      (mask[i % static_cast<std::size_t>(columns_)] ? fine.codes : tensor.codes).push_back(codes[i]);
    for (const float scale : scales) tensor.scales.push_back(sdk::half_bits(scale));
    for (const float scale : fine_scales) fine.scales.push_back(sdk::half_bits(scale));
    tensor.protected_columns = std::move(fine);
    return tensor;
  }

  std::vector<std::int8_t> codes;
  std::vector<float> scales, fine_scales;
  double squared_error = 0;

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
    Case ours(fixture, name, settings);
    const std::vector<mlg_quantize_tensor> tensors{ours.tensor()};

    const std::vector<double> scores = group_scores(tensors[0], ours.size());
    const std::vector<double> theirs = fixture.doubles(name + ".score");
    ASSERT_EQ(scores.size(), theirs.size());
    for (std::size_t i = 0; i < scores.size(); ++i) EXPECT_NEAR(scores[i], theirs[i], 1e-6 * theirs[i]);

    const std::vector<std::int32_t> starts = fixture.ints(name + ".starts");
    const std::vector<ColumnGroup> groups =
        most_salient_groups(tensors, ours.size(), settings.at("bits_hi"), settings.at("groups"));
    ASSERT_EQ(groups.size(), starts.size());
    for (std::size_t i = 0; i < groups.size(); ++i) EXPECT_EQ(groups[i].start, starts[i]);
    const ProtectedColumns fine = chosen_columns(ours.quantizer(), tensors).at(0);
    EXPECT_TRUE(std::ranges::is_permutation(fine.starts, starts));

    ours.quantize({});
    EXPECT_EQ(ours.codes, codes(fixture, name + ".q_plain"));
    EXPECT_NEAR(ours.squared_error / settings.at("hessian_error_plain").get<double>(), 1, 1e-4);
    ours.quantize(fine);
    EXPECT_EQ(ours.codes, codes(fixture, name + ".q"));
    EXPECT_EQ(ours.scales, fixture.floats(name + ".scale"));
    EXPECT_EQ(ours.fine_scales, fixture.floats(name + ".scale_hi"));
    EXPECT_NEAR(ours.squared_error / settings.at("hessian_error").get<double>(), 1, 1e-4);
    const std::vector<float> read_back = dequantize(ours.stored(fine));
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
