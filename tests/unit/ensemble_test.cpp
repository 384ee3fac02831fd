// Ensembles: stochastic rounding keeps the mean and its bits, averages are those of probabilities.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

#include "framework/core/file.h"
#include "framework/core/philox.h"
#include "framework/plugin/ensemble.h"
#include "framework/plugin/plugin_threads.h"
#include "lab/ensemble/members.h"
#include "lab/ensemble/score_ensemble.h"
#include "plugins/ensembles/stochastic_rounding/rounding.h"
#include "tests/support/plugins.h"

namespace mulligan::ensemble::ensemble_test {
namespace {

namespace rounding = stochastic_rounding;

std::vector<float> normal_values(std::size_t count, double deviation, std::uint64_t seed) {
  std::vector<float> values(count);
  PhiloxStream(seed, "ensemble test").fill_normal(values, deviation);
  return values;
}

// One weight by the plugin of this build.
std::vector<float> made(const Ensemble& plugin, const std::vector<float>& centre, std::int64_t columns,
                        std::int64_t member, std::uint64_t seed = 5, std::int64_t tensor = 0,
                        int threads = 1) {
  set_plugin_threads(threads);
  std::vector<float> out(centre.size(), std::nanf(""));
  plugin.make(
      {"w", centre.data(), std::ssize(centre) / columns, columns, tensor, seed, member, plugin_parallel_for},
      out.data());
  return out;
}

std::unique_ptr<Ensemble> rounding_plugin(const std::string& keys = "") {
  return make_plugin<Ensemble>(MLG_ENSEMBLE, "stochastic_rounding", keys);
}

// Over 4,000 members the mean of each element lies within 4 standard errors. A fair plugin fails this for 1 seed in 10; the seed is fixed.
TEST(StochasticRounding, TheMeanOverMembersIsTheWeight) {
  constexpr std::int64_t columns = 33, members = 4000;
  std::vector<float> centre = normal_values(5 * columns, 0.02, 1);
  std::fill_n(centre.begin(), columns, 0.0F);  // a row of zeros
  centre[2 * columns] = 0.3F;                  // an outlier: its row has a coarse grid
  for (const int bits : {2, 3, 5, 8, 12}) {
    const auto plugin = rounding_plugin("bits = " + std::to_string(bits));
    std::vector<double> sums(centre.size());
    for (std::int64_t member = 0; member < members; ++member) {
      const std::vector<float> weight = made(*plugin, centre, columns, member);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<double>(weight[i]);
    }
    double squares = 0;  // of the standardised errors, where an element varies at all
    std::size_t count = 0;
    for (std::size_t i = 0; i < centre.size(); ++i) {
      const std::size_t row = i / columns * columns;
      const float scale = rounding::scale_of(centre.data() + row, columns, bits);
      const double mean = sums[i] / members, error = std::abs(mean - static_cast<double>(centre[i]));
      const double units = scale > 0 ? static_cast<double>(centre[i]) / static_cast<double>(scale) : 0;
      const double fraction = units - std::floor(units);
      const double deviation = static_cast<double>(scale) * std::sqrt(fraction * (1 - fraction) / members);
      // f32's own rounding of scale * code comes on top.
      EXPECT_LE(error, 4 * deviation + std::abs(static_cast<double>(centre[i])) * 0x1p-22)
          << "element " << i << " at " << bits << " bits";
      if (deviation > 1e-3 * static_cast<double>(scale) / std::sqrt(members)) {
        squares += std::pow(error / deviation, 2);
        ++count;
      }
    }
    // The errors are as large as chance makes them, too: a plugin that rounds to nearest would have none of it.
    EXPECT_NEAR(squares / static_cast<double>(count), 1, 0.5) << bits << " bits";
  }
}

// Every weight lies on one of the two nearest grid points, within the largest code.
TEST(StochasticRounding, StaysOnTheGridNextToTheWeight) {
  constexpr std::int64_t columns = 7;
  const std::vector<float> centre = normal_values(11 * columns, 1.0, 2);
  for (const int bits : {2, 4, 7, 16}) {
    const auto plugin = rounding_plugin("bits = " + std::to_string(bits));
    for (const std::int64_t member :
         {std::int64_t{MLG_ENSEMBLE_REFERENCE}, std::int64_t{0}, std::int64_t{77}}) {
      const std::vector<float> weight = made(*plugin, centre, columns, member);
      for (std::size_t i = 0; i < centre.size(); ++i) {
        const float scale = rounding::scale_of(centre.data() + i / columns * columns, columns, bits);
        const double code = static_cast<double>(weight[i]) / static_cast<double>(scale);
        // fp32 rounds scale * code: a part in 2^24 of each.
        const double slack = rounding::largest_code(bits) * 0x1p-22;
        EXPECT_NEAR(code, std::round(code), slack) << i;
        EXPECT_LE(std::abs(code), rounding::largest_code(bits) + slack) << i;
        const double off = std::abs(code - static_cast<double>(centre[i]) / static_cast<double>(scale));
        EXPECT_LE(off, (member < 0 ? 0.5 : 1.0) + slack) << i;
      }
    }
  }
}

TEST(StochasticRounding, OneScaleOfTheWholeTensor) {
  std::vector<float> centre(2 * 3, 0.01F);
  centre[5] = 1;
  const auto plugin = rounding_plugin("bits = 3\nscales = \"tensor\"");
  const std::vector<float> weight = made(*plugin, centre, 3, MLG_ENSEMBLE_REFERENCE);
  EXPECT_EQ(weight, (std::vector<float>{0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(plugin->stored_bytes(2, 3), 3.0 + 4.0);  // 18 bits, one scale
  EXPECT_EQ(rounding_plugin("bits = 3")->stored_bytes(2, 3), 3.0 + 8.0);
}

// The same bits over threads, after other members and on any machine: the digest was made once.
TEST(StochasticRounding, MembersAreAFunctionOfTheirSeed) {
  constexpr std::int64_t columns = 37;
  std::vector<float> centre(101 * columns);  // of integers, so that only the plugin's own arithmetic counts
  for (std::size_t i = 0; i < centre.size(); ++i)
    centre[i] = static_cast<float>(static_cast<int>(i * 2654435761U % 4001) - 2000) / 4096.0F;
  const auto plugin = rounding_plugin("bits = 5");
  const std::vector<float> member = made(*plugin, centre, columns, 3);
  for (const int threads : {2, 5, 16}) {
    made(*plugin, centre, columns, 9);
    EXPECT_EQ(made(*plugin, centre, columns, 3, 5, 0, threads), member) << threads << " threads";
  }
  EXPECT_NE(made(*plugin, centre, columns, 4), member);
  EXPECT_NE(made(*plugin, centre, columns, 3, 6), member);     // another seed
  EXPECT_NE(made(*plugin, centre, columns, 3, 5, 1), member);  // another tensor
  EXPECT_EQ(sha256_hex(std::string_view(reinterpret_cast<const char*>(member.data()),
                                        member.size() * sizeof(float))),
            "1d66987a33e51fbdfd9cf5fb0a6fb59e79a040b065af8f0ef738555c0deacc1d");
}

// -ln of the mean probability by the naive formula, in long double.
AverageSums naive(const std::vector<std::vector<float>>& logits, const std::vector<std::size_t>& answers,
                  std::size_t vocabulary) {
  AverageSums sums;
  sums.members.resize(logits.size());
  for (std::size_t token = 0; token < answers.size(); ++token) {
    std::vector<long double> mean(vocabulary, 0.0L);
    long double mean_loss = 0;
    std::vector<std::size_t> choices;
    for (std::size_t k = 0; k < logits.size(); ++k) {
      long double total = 0;
      for (std::size_t v = 0; v < vocabulary; ++v)
        total += std::exp(static_cast<long double>(logits[k][token * vocabulary + v]));
      std::size_t choice = 0;
      for (std::size_t v = 0; v < vocabulary; ++v) {
        const long double z = logits[k][token * vocabulary + v];
        mean[v] += std::exp(z) / total / static_cast<long double>(logits.size());
        if (z > static_cast<long double>(logits[k][token * vocabulary + choice])) choice = v;
      }
      const long double loss =
          std::log(total) - static_cast<long double>(logits[k][token * vocabulary + answers[token]]);
      sums.members[k].loss_nats += static_cast<double>(loss);
      sums.members[k].right += choice == answers[token] ? 1 : 0;
      mean_loss += loss / static_cast<long double>(logits.size());
      choices.push_back(choice);
    }
    std::size_t best = 0;
    for (std::size_t v = 0; v < vocabulary; ++v) best = mean[v] > mean[best] ? v : best;
    for (const std::size_t choice : choices) sums.disagreements += choice != best ? 1 : 0;
    const auto loss = static_cast<double>(-std::log(mean[answers[token]]));
    sums.predictions.push_back({static_cast<double>(mean[best]), best == answers[token], loss});
    sums.loss_nats += loss;
    sums.mean_loss_nats += static_cast<double>(mean_loss);
  }
  return sums;
}

struct Case {
  std::size_t tokens, vocabulary, members;
};

TEST(ProbabilityAverage, IsThatOfTheNaiveFormula) {
  for (const Case& c : {Case{1, 2, 1}, Case{7, 3, 2}, Case{13, 53, 5}, Case{3, 641, 10}}) {
    std::vector<std::vector<float>> logits;
    std::vector<std::size_t> answers;
    for (std::size_t k = 0; k < c.members; ++k)
      logits.push_back(normal_values(c.tokens * c.vocabulary, 3.0, 10 + k));
    for (std::size_t t = 0; t < c.tokens; ++t) answers.push_back(t * 7 % c.vocabulary);
    ProbabilityAverage average(c.tokens + 2, c.vocabulary, c.members);
    AverageSums found;
    for (int round = 0; round < 2; ++round) {  // twice: a stretch leaves no state
      for (std::size_t k = 0; k < c.members; ++k) {
        for (std::size_t t = 0; t < c.tokens; ++t)
          average.add(k, t, std::span(logits[k]).subspan(t * c.vocabulary, c.vocabulary), answers[t]);
      }
      found = {};
      average.take(c.tokens, found);
    }
    const AverageSums expected = naive(logits, answers, c.vocabulary);
    EXPECT_NEAR(found.loss_nats, expected.loss_nats, 1e-9);
    EXPECT_NEAR(found.mean_loss_nats, expected.mean_loss_nats, 1e-9);
    EXPECT_NEAR(found.ambiguity_nats, expected.mean_loss_nats - expected.loss_nats, 1e-9);
    EXPECT_EQ(found.disagreements, expected.disagreements);
    ASSERT_EQ(found.predictions.size(), c.tokens);
    for (std::size_t t = 0; t < c.tokens; ++t) {
      EXPECT_NEAR(found.predictions[t].confidence, expected.predictions[t].confidence, 1e-6);
      EXPECT_EQ(found.predictions[t].right, expected.predictions[t].right);
    }
    for (std::size_t k = 0; k < c.members; ++k) {
      EXPECT_NEAR(found.members[k].loss_nats, expected.members[k].loss_nats, 1e-9);
      EXPECT_EQ(found.members[k].right, expected.members[k].right);
    }
  }
}

// Jensen's inequality to the last bit, whatever the losses: far apart, equal, one bit apart, infinitely bad.
TEST(ProbabilityAverage, IsNeverWorseThanTheMeanMember) {
  PhiloxStream stream(4, "losses");
  std::uint64_t draw = 0;
  for (const double spread : {0.0, 0x1p-52, 1e-12, 1e-6, 1e-2, 1.0, 50.0, 800.0}) {
    for (const std::size_t members : {1U, 2U, 3U, 10U}) {
      double loss = 0, mean = 0, ambiguity = 0;
      for (int token = 0; token < 300; ++token) {
        std::vector<double> losses;
        const double base = 5 * stream.uniform(draw++);
        for (std::size_t k = 0; k < members; ++k) losses.push_back(base + spread * stream.uniform(draw++));
        const AveragedLoss one = averaged_loss(losses);
        EXPECT_LE(one.loss_nats, one.mean_nats);
        EXPECT_GE(one.ambiguity_nats, 0);
        loss += one.loss_nats;
        mean += one.mean_nats;
        ambiguity += one.ambiguity_nats;
      }
      EXPECT_LE(loss, mean);
      EXPECT_NEAR(ambiguity, mean - loss, 1e-9 * mean);
      if (spread == 0 || members == 1) {
        EXPECT_EQ(ambiguity, 0);
      }
    }
  }
}

TEST(ProbabilityAverage, RefusesLogitsThatAreNotFinite) {
  ProbabilityAverage average(1, 2, 1);
  const std::vector<float> odd = {0.0F, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_THROW(average.add(0, 0, odd, 0), std::invalid_argument);
}

}  // namespace
}  // namespace mulligan::ensemble::ensemble_test
