// The loss plugin softcap_ce against the public reference's fused softcapped cross entropy.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/golden/golden_fixture.h"
#include "tests/support/plugin_runner.h"

namespace mulligan::softcap_ce_golden_test {
namespace {

// A case of the fixture: "v1000" with softcap 30 is stored as "v1000.cap30.*".
struct CaseName {
  std::string logits, full;
  double cap;
};

std::vector<CaseName> cases(const GoldenFixture& fixture) {
  std::vector<CaseName> found;
  for (const std::string& name : fixture.names()) {
    const std::size_t cap = name.find(".cap"), loss = name.rfind(".loss");
    if (cap == name.npos || loss == name.npos || loss + 5 != name.size()) continue;
    const std::string full = name.substr(0, loss);
    found.push_back({name.substr(0, cap), full, std::stod(full.substr(cap + 4))});
  }
  return found;
}

plugin_test::LossResult run(const GoldenFixture& fixture, const CaseName& c, bool in_place) {
  const std::string logits = c.logits + ".logits";
  const DType dtype = fixture.file().at(logits).type == MLG_BF16 ? MLG_BF16 : MLG_F32;
  return plugin_test::run_loss("softcap_ce", dtype, c.cap, fixture.shape(logits).back(),
                               fixture.floats(logits), fixture.ints(c.logits + ".targets"),
                               fixture.floats(c.logits + ".upstream"), in_place);
}

void expect_near(const std::vector<float>& actual, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], tolerance) << "element " << i;
}

// Spacing of bf16 numbers at `value`: 8 significant bits.
double bf16_ulp(double value) {
  return value == 0.0 ? 0.0 : std::ldexp(1.0, std::ilogb(value) - 7);
}

TEST(SoftcapCeGolden, LossLogsumexpAndGradient) {
  const GoldenFixture fixture("softcap_ce");
  const std::vector<CaseName> all = cases(fixture);
  std::set<std::string> bf16_cases, f32_cases;
  for (const CaseName& c : all) {
    SCOPED_TRACE(c.full);
    const plugin_test::LossResult result = run(fixture, c, false);
    expect_near(result.token_loss, fixture.doubles(c.full + ".loss"), 2e-5);
    expect_near(result.saved, fixture.doubles(c.full + ".lse"), 2e-5);
    const std::vector<double> gradient = fixture.doubles(c.full + ".grad");
    if (fixture.file().at(c.full + ".grad").type == MLG_BF16) {
      bf16_cases.insert(c.full);
      ASSERT_EQ(result.gradient.size(), gradient.size());
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        ASSERT_NEAR(result.gradient[i], gradient[i], bf16_ulp(gradient[i]) + 1e-7) << "element " << i;
      }
    } else {
      f32_cases.insert(c.full);
      expect_near(result.gradient, gradient, 3e-6);
    }
    if (HasFatalFailure()) return;
  }
  EXPECT_FALSE(bf16_cases.empty());
  EXPECT_GE(f32_cases.size(), 6u);
}

// The gradient may be written over the logits, as the trainer does to save memory.
TEST(SoftcapCeGolden, GradientInPlaceOfTheLogitsIsTheSame) {
  const GoldenFixture fixture("softcap_ce");
  for (const CaseName& c : cases(fixture)) {
    EXPECT_EQ(run(fixture, c, false).gradient, run(fixture, c, true).gradient) << c.full;
  }
}

}  // namespace
}  // namespace mulligan::softcap_ce_golden_test
