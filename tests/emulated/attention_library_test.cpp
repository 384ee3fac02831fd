// bf16 attention through the device's library, against the cpu backend's attention: on the emulated device
// the host's path that cuDNN takes on a GPU (buckets of segments, starts and lengths of rows, workspace,
// captured graphs), on a GPU cuDNN itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/operator_case.h"
#include "tests/support/test_device.h"

namespace mulligan::kernel_test::attention_library_test {
namespace {

using Lengths = std::vector<std::int64_t>;

BackendUnderTest library(std::map<std::string, std::string> keys = {}) {
  BackendUnderTest under_test{
      plugin_file("cuda"), "", {{"device", '"' + test_device() + '"'}, {"attention", "\"library\""}}, false};
  keys.merge(under_test.keys);
  under_test.keys = std::move(keys);
  return under_test;
}
BackendUnderTest cpu() {
  return {plugin_file("cpu"), "", {{"threads", "1"}}, true};
}

struct HeadCounts {
  std::int64_t query, kv, width;
};

Array random(const std::vector<std::int64_t>& shape, unsigned seed) {
  Random numbers(seed);
  return draw(MLG_BF16, shape, numbers);
}

// Boundaries of `lengths`, filled up with empty segments to `entries`.
Array boundaries(const Lengths& lengths, std::size_t entries) {
  std::vector<double> cu = {0};
  for (const std::int64_t length : lengths) cu.push_back(cu.back() + static_cast<double>(length));
  cu.resize(std::max(entries, cu.size()), cu.back());
  return {MLG_I32, {static_cast<std::int64_t>(cu.size())}, cu};
}

// Forward, then backward with what it gave. `accumulate`: dq, dk and dv start as something else than zero.
std::map<std::string, Array> attention(BackendFixture& backend, const Array& cu, const HeadCounts& s,
                                       bool accumulate = false) {
  const auto tokens = static_cast<std::int64_t>(cu.values.back());
  const std::vector<std::int64_t> wide{tokens, s.query, s.width}, narrow{tokens, s.kv, s.width};
  const double scale = 1 / std::sqrt(static_cast<double>(s.width));
  const KernelCall forward = kernel_call("attention_fwd", "q k v cu_seqlens o lse",
                                         {random(wide, 1),
                                          random(narrow, 2),
                                          random(narrow, 3),
                                          cu,
                                          {MLG_BF16, wide, {}},
                                          {MLG_F32, {tokens, s.query}, {}}},
                                         {{"softmax_scale", scale}});
  KernelResult first = backend.run(forward);
  KernelCall backward{"attention_bwd", forward.arguments, {{"softmax_scale", scale}}, {}};
  for (const char* name : {"o", "lse"}) backward.arguments[name] = first.written.at(name);
  backward.arguments["do"] = random(wide, 4);
  unsigned seed = 5;
  for (const char* name : {"dq", "dk", "dv"}) {
    backward.arguments[name] = random(name[1] == 'q' ? wide : narrow, seed++);
    backward.attributes[std::string("accumulate_") + name] = accumulate;
  }
  std::map<std::string, Array> results = backend.run(backward).written;
  results.merge(first.written);
  return results;
}

void expect_close(const std::map<std::string, Array>& actual, const std::map<std::string, Array>& expected) {
  for (const auto& [name, array] : expected) {
    double largest = 0;
    for (const double value : array.values) largest = std::max(largest, std::fabs(value));
    const std::vector<double>& values = actual.at(name).values;
    ASSERT_EQ(values.size(), array.values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(values[i], array.values[i], (name == "lse" ? 1e-4 : 1.5e-2) * largest) << name << " " << i;
    }
  }
}

class AttentionLibrary : public testing::Test {
 protected:
  std::vector<std::string> log_;
  BackendFixture library_{library(), &log_};
  BackendFixture cpu_{cpu()};

  // Plans made since the last call, by what the log says of them.
  std::vector<std::string> plans() {
    std::vector<std::string> found;
    for (const std::string& line : std::exchange(log_, {})) {
      const std::size_t at = line.find("tokens in ");
      if (line.starts_with("the device's library computes") && line.find("backward") == line.npos)
        found.push_back(line.substr(at + 10, line.find(',', at) - at - 10));
    }
    return found;
  }
};

TEST_F(AttentionLibrary, PackedSegmentsMatchTheCpuBackend) {
  const std::pair<Lengths, HeadCounts> cases[] = {{{3, 1, 4}, {2, 1, 16}},          // grouped heads
                                                  {{0, 17, 0, 33, 0}, {3, 1, 32}},  // empty segments anywhere
                                                  {{127, 129}, {2, 2, 16}},  // around the shortest bucket
                                                  {{1, 2, 63, 64, 65}, {4, 2, 64}},
                                                  {{40, 90}, {1, 1, 128}}};
  for (const auto& [lengths, shape] : cases) {
    const Array cu = boundaries(lengths, 64);
    SCOPED_TRACE(testing::Message() << lengths.size() << " segments, width " << shape.width);
    for (const bool accumulate : {false, true})
      expect_close(attention(library_, cu, shape, accumulate), attention(cpu_, cu, shape, accumulate));
    ASSERT_FALSE(plans().empty());
  }
}

// Windows of test-time training: sequences of one length. Batches of different size share a plan.
TEST_F(AttentionLibrary, EqualSegmentsArePackedWhereTheyAreFew) {
  for (const Lengths& lengths : {Lengths(3, 32), Lengths(16, 5), Lengths(17, 4), Lengths(1, 70)}) {
    const Array cu = boundaries(lengths, 0);
    expect_close(attention(library_, cu, {4, 2, 16}), attention(cpu_, cu, {4, 2, 16}));
    EXPECT_EQ(plans(), (std::vector<std::string>{lengths.size() > 16 ? "up to 64 rows of up to 256"
                                                                     : "up to 16 rows of up to 256"}));
  }
}

// Many of one length need neither starts nor lengths.
TEST_F(AttentionLibrary, ManyEqualSegmentsAreAPlainBatch) {
  const Array cu = boundaries(Lengths(70, 3), 0);
  expect_close(attention(library_, cu, {4, 2, 16}), attention(cpu_, cu, {4, 2, 16}));
  EXPECT_EQ(plans(), (std::vector<std::string>{"70 rows of 3"}));
}

// One plan per bucket, whatever segments it stands for: up to 16, 20, 24, ... rows of up to 2,048, 4,096, ... tokens. None is
// made before segments come.
TEST_F(AttentionLibrary, PlansAreMadeOncePerBucket) {
  const HeadCounts shape{1, 1, 16};
  const auto run = [&](const Lengths& lengths) { attention(library_, boundaries(lengths, 2200), shape); };
  Lengths seventeen(17, 60);
  seventeen[0] += 1024 - 17 * 60;
  run({1000, 24});
  EXPECT_EQ(plans(), (std::vector<std::string>{"up to 16 rows of up to 2048"}));
  run({24, 1000});
  run({129, 255, 255, 255, 130});
  EXPECT_EQ(plans(), std::vector<std::string>{});
  run({2049, 7});
  EXPECT_EQ(plans(), (std::vector<std::string>{"up to 16 rows of up to 4096"}));
  run(Lengths(18, 100));
  EXPECT_EQ(plans(), (std::vector<std::string>{"up to 20 rows of up to 2048"}));
  log_.clear();
  run(seventeen);  // more than one for 64 tokens: the library's, too, with a line in the log
  ASSERT_FALSE(log_.empty());
  EXPECT_NE(log_.front().find("the device's library computes bf16 attention"), std::string::npos)
      << log_.front();
  EXPECT_NE(log_.front().find("in up to 20 rows of up to 2048"), std::string::npos) << log_.front();
}

TEST_F(AttentionLibrary, OwnKernelTakesWhatTheLibraryIsNotMeantFor) {
  const Array cu = boundaries({9, 20}, 8);
  expect_close(attention(library_, cu, {2, 1, 24}), attention(cpu_, cu, {2, 1, 24}));  // no multiple of 16
  EXPECT_TRUE(plans().empty());
  BackendFixture deterministic(library({{"deterministic", "true"}}), &log_);
  expect_close(attention(deterministic, cu, {2, 1, 16}), attention(cpu_, cu, {2, 1, 16}));
  for (const std::string& line : log_) EXPECT_EQ(line.find("backward"), line.npos) << line;
}

// Boundaries that do not fit go to the own kernel, which answers with NaN, as for f32.
TEST_F(AttentionLibrary, BadSegmentsGiveNaN) {
  for (const std::vector<double>& bounds : std::vector<std::vector<double>>{{0, 3}, {1, 4}, {0, 3, 2, 4}}) {
    const Array cu{MLG_I32, {static_cast<std::int64_t>(bounds.size())}, bounds};
    const Array q = random({4, 1, 16}, 1);
    const KernelCall call =
        kernel_call("attention_fwd", "q k v cu_seqlens o lse",
                    {q, q, q, cu, {MLG_BF16, q.shape, {}}, {MLG_F32, {4, 1}, {}}}, {{"softmax_scale", 1}});
    const std::vector<double> o = library_.run(call).written.at("o").values;
    for (const double value : o) EXPECT_TRUE(std::isnan(value));
  }
}

}  // namespace
}  // namespace mulligan::kernel_test::attention_library_test
