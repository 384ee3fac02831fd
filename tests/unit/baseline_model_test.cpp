// configs/records/baseline.toml against the formulas of the challenge's naive baseline, written out once more in double.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "framework/config/run_config.h"
#include "framework/core/philox.h"
#include "framework/model/rope.h"
#include "tests/support/model_runner.h"

namespace mulligan::baseline_model_test {
namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;
using Weights = std::map<std::string, std::vector<double>>;

constexpr std::int64_t kTokens = 21;
const std::vector<std::int32_t> kSegments = {0, 12, 21};  // rows that attention does not leave

ModelConfig small_baseline() {
  return load_run_config(MULLIGAN_SOURCE_DIR "/configs/records/baseline.toml",
                         std::vector<std::string>{"model.vocabulary=13", "model.layers=5", "model.width=16",
                                                  "model.heads=4", "model.kv_heads=2", "model.head_width=4",
                                                  "model.mlp_hidden=24"})
      .config.model;
}

Row norm(const Row& x) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  Row out = x;
  for (double& value : out) value /= std::sqrt(squares / static_cast<double>(x.size()) + 0x1p-23);
  return out;
}

// One token after the other, one number after the other.
class Reference {
 public:
  Reference(const ModelConfig& model, const Weights& weights) : m_(model), w_(weights) {}

  double mean_loss(const std::vector<std::int32_t>& tokens, const std::vector<std::int32_t>& targets) const {
    const auto layers = static_cast<std::size_t>(m_.layers), encoder = layers / 2;
    Rows x;
    for (const std::int32_t token : tokens) x.push_back(norm(row("tok_emb.weight", token, m_.width)));
    const Rows x0 = x;
    std::vector<Rows> skips;
    for (std::size_t layer = 0; layer < layers; ++layer) {
      if (layer >= encoder && !skips.empty()) {
        const Row weight = row("skip_weights", static_cast<std::int64_t>(layer - encoder), m_.width);
        for (std::size_t t = 0; t < x.size(); ++t)
          for (std::size_t j = 0; j < weight.size(); ++j) x[t][j] += weight[j] * skips.back()[t][j];
        skips.pop_back();
      }
      x = block(x, x0, static_cast<std::int64_t>(layer));
      if (layer < encoder) skips.push_back(x);
    }
    double sum = 0;
    for (std::size_t t = 0; t < x.size(); ++t) {
      double partition = 0, hit = 0;
      for (std::int64_t v = 0; v < m_.vocabulary; ++v) {
        const double z =
            m_.softcap * std::tanh(dot(row("tok_emb.weight", v, m_.width), norm(x[t])) / m_.softcap);
        partition += std::exp(z);
        if (v == targets[t]) hit = z;
      }
      sum += std::log(partition) - hit;
    }
    return sum / static_cast<double>(x.size());
  }

 private:
  static double dot(const Row& a, const Row& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  }
  Row row(const std::string& name, std::int64_t index, std::int64_t width) const {
    const auto begin = w_.at(name).begin() + index * width;
    return {begin, begin + width};
  }
  // Matrix `entry` of a bank, [rows, x], times x.
  Row times(const std::string& bank, std::int64_t entry, std::int64_t rows, const Row& x) const {
    Row out;
    for (std::int64_t r = 0; r < rows; ++r)
      out.push_back(dot(row(bank, entry * rows + r, static_cast<std::int64_t>(x.size())), x));
    return out;
  }

  Rows block(Rows x, const Rows& x0, std::int64_t layer) const {
    const std::string name = "blocks." + std::to_string(layer) + ".";
    const Row mix = row(name + "resid_mix", 0, 2 * m_.width);
    const Row attn_scale = row(name + "attn_scale", 0, m_.width),
              mlp_scale = row(name + "mlp_scale", 0, m_.width);
    const auto width = static_cast<std::size_t>(m_.width);
    Rows normed;
    for (std::size_t t = 0; t < x.size(); ++t) {
      for (std::size_t j = 0; j < width; ++j) x[t][j] = mix[j] * x[t][j] + mix[width + j] * x0[t][j];
      normed.push_back(norm(x[t]));
    }
    const Rows heads = attention(normed, layer);
    for (std::size_t t = 0; t < x.size(); ++t) {
      const Row a = times("qo_bank", m_.layers + layer, m_.width, heads[t]);
      for (std::size_t j = 0; j < width; ++j) x[t][j] += attn_scale[j] * a[j];
      Row hidden = times("mlp_up_bank", layer, m_.mlp_hidden, norm(x[t]));
      for (double& u : hidden) u = u > 0 ? u * u : 0;
      const Row out = times("mlp_down_bank", layer, m_.width, hidden);
      for (std::size_t j = 0; j < width; ++j) x[t][j] += mlp_scale[j] * out[j];
    }
    return x;
  }

  // Head `head` of a token's projection, normed and turned by its place in the row.
  Row head_of(const Row& projected, std::int64_t head, std::int64_t place) const {
    const std::int64_t dh = m_.head_width, half = dh / 2;
    const Row n = norm({projected.begin() + head * dh, projected.begin() + (head + 1) * dh});
    const RopeTables tables = rope_tables(m_, kTokens);
    Row out(n.size());
    for (std::int64_t j = 0; j < half; ++j) {
      const double cos = tables.cos[place * half + j], sin = tables.sin[place * half + j];
      out[j] = n[j] * cos + n[j + half] * sin;
      out[j + half] = n[j + half] * cos - n[j] * sin;
    }
    return out;
  }

  Rows attention(const Rows& n, std::int64_t layer) const {
    const std::int64_t kv_width = m_.kv_heads * m_.head_width, dh = m_.head_width;
    const Row gain = row("blocks." + std::to_string(layer) + ".attn.q_gain", 0, m_.heads);
    Rows q, k, v, out;
    for (const Row& x : n) {
      q.push_back(times("qo_bank", layer, m_.width, x));
      k.push_back(times("kv_bank", layer, kv_width, x));
      v.push_back(times("kv_bank", m_.layers + layer, kv_width, x));
    }
    for (std::int64_t t = 0; t < kTokens; ++t) {
      const std::int64_t begin = t < kSegments[1] ? 0 : kSegments[1];
      Row mixed(static_cast<std::size_t>(m_.width));
      for (std::int64_t h = 0; h < m_.heads; ++h) {
        const std::int64_t kv = h / (m_.heads / m_.kv_heads);
        const Row query = head_of(q[t], h, t - begin);
        double partition = 0;
        for (std::int64_t s = begin; s <= t; ++s) {
          const double weight = std::exp(gain[h] * dot(query, head_of(k[s], kv, s - begin)) / std::sqrt(dh));
          partition += weight;
          for (std::int64_t j = 0; j < dh; ++j) mixed[h * dh + j] += weight * v[s][kv * dh + j];
        }
        for (std::int64_t j = 0; j < dh; ++j) mixed[h * dh + j] /= partition;
      }
      out.push_back(mixed);
    }
    return out;
  }

  const ModelConfig& m_;
  const Weights& w_;
};

TEST(BaselineModel, LossesAndGradientsAreThoseOfItsFormulas) {
  const ModelConfig model = small_baseline();
  std::vector<std::int32_t> tokens, targets;
  const PhiloxStream random(3, "tokens");
  for (std::uint64_t t = 0; t <= kTokens; ++t)
    tokens.push_back(static_cast<std::int32_t>(random.bits(t) % 13));
  targets.assign(tokens.begin() + 1, tokens.end());
  tokens.pop_back();

  const auto backend = make_test_backend();
  for (const bool fused : {false, true}) {
    SCOPED_TRACE(fused);
    backend->set_fused_kernels(fused);
    ModelRunner::Options options;
    options.segments = kSegments.size();
    ModelRunner runner(*backend, model, kTokens, options);
    Weights weights;
    for (const ParameterLayout& layout : runner.parameters()) {
      // Every part counts: scales are not 1, projections not 0.
      std::vector<float> values(static_cast<std::size_t>(layout.spec.type.elements()));
      PhiloxStream(5, layout.spec.name).fill_normal(values, layout.spec.matrix ? 0.4 : 0.3);
      if (!layout.spec.matrix)
        for (float& value : values) value += 1;
      runner.set_parameter(layout.spec.name, values);
      weights[layout.spec.name] = {values.begin(), values.end()};
    }
    runner.run(tokens, targets, kSegments);
    const double loss = Reference(model, weights).mean_loss(tokens, targets);
    EXPECT_NEAR(runner.mean_loss(), loss, 1e-5);
    for (const ParameterLayout& layout : runner.parameters()) {
      const std::vector<float> gradient = runner.gradient(layout.spec.name);
      const auto along = [&](double step) {
        Weights moved = weights;
        std::vector<double>& values = moved.at(layout.spec.name);
        const PhiloxStream direction(7, layout.spec.name);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] += step * direction.normal(i);
        return Reference(model, moved).mean_loss(tokens, targets);
      };
      double ours = 0, size = 0;
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        const double part = gradient[i] * PhiloxStream(7, layout.spec.name).normal(i);
        ours += part;
        size += std::abs(part);
      }
      EXPECT_GT(size, 0) << layout.spec.name;
      EXPECT_NEAR(ours, (along(1e-5) - along(-1e-5)) / 2e-5, 2e-5 * size + 1e-7) << layout.spec.name;
    }
  }
}

}  // namespace
}  // namespace mulligan::baseline_model_test
