#include "tools/doctor/formulas.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace mulligan::doctor {
namespace {

using Numbers = std::vector<double>;

std::size_t index(std::int64_t i) {
  return static_cast<std::size_t>(i);
}
double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
double leaky_squared(double u, double slope) {
  const double v = u > 0 ? u : slope * u;
  return v * v;
}

// scale * x / sqrt(mean(x^2) + eps) of each row.
Numbers normed(const Numbers& x, std::int64_t width, double scale, double eps) {
  Numbers y(x.size());
  for (std::size_t row = 0; row < x.size(); row += index(width)) {
    double squares = 0;
    for (std::size_t i = 0; i < index(width); ++i) squares += x[row + i] * x[row + i];
    const double factor = scale / std::sqrt(squares / static_cast<double>(width) + eps);
    for (std::size_t i = 0; i < index(width); ++i) y[row + i] = factor * x[row + i];
  }
  return y;
}
Numbers normed(const ReferenceCall& c, const Numbers& x, std::int64_t width) {
  return normed(x, width, c.attribute("scale"), c.attribute("eps"));
}

ReferenceResults embedding(const ReferenceCall& c) {
  const Numbers ids = c[0], table = c[1];
  const std::int64_t width = c.dim(1, 1);
  Numbers x;
  for (const double id : ids) {
    const auto row = table.begin() + static_cast<std::int64_t>(id) * width;
    x.insert(x.end(), row, row + width);
  }
  return {{2, x}};
}

ReferenceResults rms_norm(const ReferenceCall& c) {
  return {{1, normed(c, c[0], c.dim(0, 1))}};
}

// mix0 x + mix1 x0
Numbers mixed(const Numbers& x, const Numbers& x0, const Numbers& mix) {
  const std::size_t width = mix.size() / 2;
  Numbers y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = mix[i % width] * x[i] + mix[width + i % width] * x0[i];
  return y;
}
// x + s a; without s x + a
Numbers scaled_sum(const ReferenceCall& c) {
  Numbers y = c[0];
  const Numbers a = c[1], s = c.has(2) ? c[2] : Numbers(1, 1.0);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += s[i % s.size()] * a[i];
  return y;
}
// sigmoid(gate) x + (1 - sigmoid(gate)) weight skip; without gate x + weight skip, without weight or
// skip no such term.
Numbers blended(const Numbers& x, const Numbers& skip, const Numbers& weight, const Numbers& gate) {
  Numbers y = x;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double s = skip.empty() || weight.empty() ? 0 : weight[i % weight.size()] * skip[i];
    const double g = gate.empty() ? 1 : sigmoid(gate[i % gate.size()]);
    y[i] = gate.empty() ? x[i] + s : g * x[i] + (1 - g) * s;
  }
  return y;
}
Numbers optional(const ReferenceCall& c, std::size_t argument) {
  return c.has(argument) ? c[argument] : Numbers();
}

ReferenceResults residual_mix_norm(const ReferenceCall& c) {
  const Numbers y = mixed(c[0], c[1], c[2]);
  return {{3, y}, {4, normed(c, y, c.dim(0, 1))}};
}

ReferenceResults scaled_add_norm(const ReferenceCall& c) {
  const Numbers y = scaled_sum(c);
  return {{3, y}, {4, normed(c, y, c.dim(0, 1))}};
}

ReferenceResults residual_chain(const ReferenceCall& c) {
  const Numbers sum = scaled_sum(c), skip = c.has(3) ? c[3] : sum;
  const Numbers merged = blended(sum, skip, optional(c, 4), optional(c, 5));
  const Numbers y = mixed(merged, c[6], c[7]);
  return {{8, sum}, {9, merged}, {10, y}, {11, normed(c, y, c.dim(0, 1))}};
}

ReferenceResults matmul(const ReferenceCall& c) {
  const Numbers a = c[0], b = c[1];
  const bool batched = c.type(0).rank == 3;
  const std::int64_t batch = batched ? c.dim(0, 0) : 1;
  const int first = batched ? 1 : 0;
  const std::int64_t rows = c.dim(2, first), columns = c.dim(2, first + 1);
  const bool ta = c.attribute("transpose_a") != 0, tb = c.attribute("transpose_b") != 0;
  const std::int64_t inner = c.dim(0, ta ? first : first + 1);
  const double alpha = c.attribute("alpha");
  Numbers out(index(batch * rows * columns));
  for (std::int64_t n = 0; n < batch; ++n) {
    const double* pa = a.data() + n * rows * inner;
    const double* pb = b.data() + n * columns * inner;
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < inner; ++k)
          sum += (ta ? pa[k * rows + i] : pa[i * inner + k]) * (tb ? pb[j * inner + k] : pb[k * columns + j]);
        out[index((n * rows + i) * columns + j)] = alpha * sum;
      }
    }
  }
  return {{2, out}};
}

ReferenceResults widened_matmul(const ReferenceCall& c) {
  const Numbers a = c[0], b = c[1];
  const std::int64_t rows = c.dim(2, 0), columns = c.dim(2, 1), inner = c.dim(0, 1);
  const bool transposed = c.attribute("transpose_b") != 0;
  Numbers out(index(rows * columns));
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      for (std::int64_t k = 0; k < inner; ++k) {
        const std::int64_t at = transposed ? j * inner + k : k * columns + j;
        out[index(i * columns + j)] += a[index(i * inner + k)] * b[index(at)];
      }
    }
  }
  return {{2, out}};
}

struct Rotation {
  Numbers cos, sin;
  std::int64_t dims, row_length;
  bool norm;
  double eps;
};
Rotation rotation_of(const ReferenceCall& c, std::size_t cos) {
  return {c[cos],
          c[cos + 1],
          static_cast<std::int64_t>(c.attribute("rope_dims")),
          static_cast<std::int64_t>(c.attribute("row_length")),
          c.attribute("norm") != 0,
          c.attribute("eps")};
}
// Heads [T, G, h]: normed, then elements (j, j + dims/2) turned by the angle of the position; `gain` may
// be empty.
Numbers rotated(Numbers x, std::int64_t heads, std::int64_t width, const Rotation& r, const Numbers& gain) {
  if (r.norm) x = normed(x, width, 1, r.eps);
  const std::int64_t half = r.dims / 2;
  for (std::int64_t head = 0; head < static_cast<std::int64_t>(x.size()) / width; ++head) {
    double* u = x.data() + head * width;
    const std::int64_t position = r.row_length > 0 ? (head / heads) % r.row_length : 0;
    for (std::int64_t j = 0; j < half; ++j) {
      const double cos = r.cos[index(position * half + j)], sin = r.sin[index(position * half + j)];
      const double a = u[j], b = u[j + half];
      u[j] = a * cos + b * sin;
      u[j + half] = -a * sin + b * cos;
    }
    if (gain.empty()) continue;
    for (std::int64_t j = 0; j < width; ++j) u[j] *= gain[index(head % heads)];
  }
  return x;
}

ReferenceResults qk_norm_rope(const ReferenceCall& c) {
  return {{4, rotated(c[0], c.dim(0, 1), c.dim(0, 2), rotation_of(c, 1), c.has(3) ? c[3] : Numbers())}};
}

ReferenceResults qkv_split_norm_rope(const ReferenceCall& c) {
  const Numbers packed = c[0];
  const std::int64_t tokens = c.dim(0, 0), row = c.dim(0, 1);
  const auto part = [&](std::int64_t begin, std::int64_t size) {
    Numbers out;
    for (std::int64_t t = 0; t < tokens; ++t) {
      const auto at = packed.begin() + t * row + begin;
      out.insert(out.end(), at, at + size);
    }
    return out;
  };
  const std::int64_t q = c.dim(4, 1), k = c.dim(5, 1), width = c.dim(4, 2);
  const Rotation r = rotation_of(c, 1);
  ReferenceResults results{{4, rotated(part(0, q * width), q, width, r, c.has(3) ? c[3] : Numbers())},
                           {5, rotated(part(q * width, k * width), k, width, r, {})},
                           {6, part((q + k) * width, k * width)}};
  if (c.has(7)) results[7] = part((q + 2 * k) * width, q);
  return results;
}

// Each query sees the keys up to its own position in its segment.
ReferenceResults attention(const ReferenceCall& c) {
  const bool causal = c.call->kernel != "attention_bidirectional_fwd";
  const Numbers q = c[0], k = c[1], v = c[2], boundaries = c[3];
  const std::int64_t heads = c.dim(0, 1), kv_heads = c.dim(1, 1), width = c.dim(0, 2);
  const double scale = c.attribute("softmax_scale");
  Numbers out(q.size()), lse(index(c.dim(0, 0) * heads));
  for (std::size_t segment = 0; segment + 1 < boundaries.size(); ++segment) {
    const auto begin = static_cast<std::int64_t>(boundaries[segment]);
    const auto end = static_cast<std::int64_t>(boundaries[segment + 1]);
    for (std::int64_t t = begin; t < end; ++t) {
      for (std::int64_t h = 0; h < heads; ++h) {
        const std::int64_t g = h / (heads / kv_heads);
        const double* query = q.data() + (t * heads + h) * width;
        const std::int64_t keys_end = causal ? t + 1 : end;
        Numbers scores;
        for (std::int64_t j = begin; j < keys_end; ++j) {
          const double* key = k.data() + (j * kv_heads + g) * width;
          double dot = 0;
          for (std::int64_t i = 0; i < width; ++i) dot += query[i] * key[i];
          scores.push_back(scale * dot);
        }
        const double most = *std::ranges::max_element(scores);
        double sum = 0;
        for (double& score : scores) sum += score = std::exp(score - most);
        for (std::int64_t j = begin; j < keys_end; ++j) {
          const double* value = v.data() + (j * kv_heads + g) * width;
          for (std::int64_t i = 0; i < width; ++i)
            out[index((t * heads + h) * width + i)] += scores[index(j - begin)] / sum * value[i];
        }
        lse[index(t * heads + h)] = most + std::log(sum);
      }
    }
  }
  return {{4, out}, {5, lse}};
}

ReferenceResults head_gate_xsa(const ReferenceCall& c) {
  Numbers o = c[0];
  const std::int64_t heads = c.dim(0, 1), width = c.dim(0, 2);
  const Numbers v = c.has(1) ? c[1] : Numbers(), gate = c.has(2) ? c[2] : Numbers();
  const std::int64_t kv_heads = v.empty() ? heads : c.dim(1, 1);
  for (std::int64_t head = 0; head < static_cast<std::int64_t>(o.size()) / width; ++head) {
    double* at = o.data() + head * width;
    if (!v.empty()) {
      const std::int64_t kv = head / heads * kv_heads + head % heads / (heads / kv_heads);
      const double* value = v.data() + kv * width;
      double squares = 0, dot = 0;
      for (std::int64_t i = 0; i < width; ++i) squares += value[i] * value[i];
      const double length = std::max(std::sqrt(squares), 1e-12);
      for (std::int64_t i = 0; i < width; ++i) dot += at[i] * value[i] / length;
      for (std::int64_t i = 0; i < width; ++i) at[i] -= dot * value[i] / length;
    }
    if (gate.empty()) continue;
    for (std::int64_t i = 0; i < width; ++i) at[i] *= sigmoid(c.attribute("gate_scale") * gate[index(head)]);
  }
  return {{3, o}};
}

ReferenceResults concat_rows(const ReferenceCall& c) {
  const char* rows[] = {nullptr, "row_b", "row_c", "row_d"};
  Numbers y(index(c.type(4).elements()), 0);
  const std::int64_t width = c.dim(4, 1);
  for (std::size_t part = 0; part < 4; ++part) {
    if (!c.has(part)) continue;
    const std::int64_t row = part == 0 ? 0 : static_cast<std::int64_t>(c.attribute(rows[part]));
    const Numbers values = c[part];
    const std::int64_t columns = c.dim(part, 1);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      y[index((row + at / columns) * width + at % columns)] = values[i];
    }
  }
  return {{4, y}};
}

ReferenceResults leaky_relu_squared(const ReferenceCall& c) {
  Numbers y = c[0];
  for (double& value : y) value = leaky_squared(value, c.attribute("slope"));
  return {{1, y}};
}

ReferenceResults linear_leaky_relu_squared(const ReferenceCall& c) {
  const Numbers x = c[0], w = c[1];
  const std::int64_t rows = c.dim(0, 0), inner = c.dim(1, 1), columns = c.dim(1, 0);
  Numbers u(index(rows * columns)), y;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < inner; ++k) sum += x[index(i * inner + k)] * w[index(j * inner + k)];
      u[index(i * columns + j)] = sum;
    }
  }
  for (const double value : u) y.push_back(leaky_squared(value, c.attribute("slope")));
  return {{2, u}, {3, y}};
}

ReferenceResults skip_merge(const ReferenceCall& c) {
  Numbers y = c[0];
  const Numbers s = c[1], weight = c[2], gate = c.has(3) ? c[3] : Numbers();
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double skip = weight[i % weight.size()] * s[i];
    y[i] = gate.empty() ? y[i] + skip : skip + sigmoid(gate[i % gate.size()]) * (y[i] - skip);
  }
  return {{4, y}};
}

// Both lanes after a block: lane0, lane1, a, m, attn_scale, mlp_scale, rho, post.
std::pair<Numbers, Numbers> merged_lanes(const ReferenceCall& c) {
  const Numbers lane0 = c[0], lane1 = c[1], a = c[2], m = c[3], attn = c[4], mlp = c[5], rho = c[6],
                post = c[7];
  Numbers out0(lane0.size()), out1(lane0.size());
  for (std::size_t i = 0; i < lane0.size(); ++i) {
    const double x = attn[i % attn.size()] * a[i], y = mlp[i % mlp.size()] * m[i];
    out0[i] = rho[0] * lane0[i] + post[0] * x + post[2] * y;
    out1[i] = rho[1] * lane1[i] + post[1] * x + post[3] * y;
  }
  return {out0, out1};
}

ReferenceResults lane_merge(const ReferenceCall& c) {
  const auto [out0, out1] = merged_lanes(c);
  return {{8, out0}, {9, out1}};
}

ReferenceResults lane_chain(const ReferenceCall& c) {
  const auto [out0, out1] = merged_lanes(c);
  const Numbers merged = blended(out0, optional(c, 8), optional(c, 9), optional(c, 10));
  const std::int64_t width = c.dim(0, 1);
  return {{13, merged},
          {14, out1},
          {15, normed(c, mixed(merged, c[11], c[12]), width)},
          {16, normed(c, out1, width)}};
}

ReferenceResults lane_mean_norm(const ReferenceCall& c) {
  auto [mean, out1] = merged_lanes(c);
  for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = (mean[i] + out1[i]) / 2;
  return {{8, normed(c, mean, c.dim(0, 1))}};
}

// The three of family qwen2.
ReferenceResults weighted_rms_norm(const ReferenceCall& c) {
  const Numbers weight = c[1];
  Numbers y = normed(c[0], c.dim(0, 1), 1, c.attribute("eps"));
  for (std::size_t i = 0; i < y.size(); ++i) y[i] *= weight[i % weight.size()];
  return {{2, y}};
}
ReferenceResults row_bias(const ReferenceCall& c) {
  const Numbers bias = c[1];
  Numbers y = c[0];
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += bias[i % bias.size()];
  return {{2, y}};
}
ReferenceResults silu_gate(const ReferenceCall& c) {
  Numbers y = c[0];
  const Numbers u = c[1];
  for (std::size_t i = 0; i < y.size(); ++i) y[i] *= sigmoid(y[i]) * u[i];
  return {{2, y}};
}

ReferenceResults scale_rows(const ReferenceCall& c) {
  Numbers y = c[0];
  const Numbers s = c[1];
  const std::size_t columns = y.size() / s.size();
  for (std::size_t i = 0; i < y.size(); ++i) y[i] *= s[i / columns];
  return {{2, y}};
}

ReferenceResults axpby(const ReferenceCall& c) {
  Numbers y = c[0];
  const Numbers b = c.has(1) ? c[1] : Numbers();
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = c.attribute("alpha") * y[i] + (b.empty() ? 0 : c.attribute("beta") * b[i]);
  return {{2, y}};
}

ReferenceResults softcap(const ReferenceCall& c) {
  Numbers y = c[0];
  const double cap = c.attribute("cap");
  for (double& value : y) value = cap * std::tanh(value / cap);
  return {{1, y}};
}

ReferenceResults asymmetric_softcap(const ReferenceCall& c) {
  Numbers y = c[0];
  const double positive = c[1][0], negative = c[2][0];
  for (double& value : y) {
    const double cap = value > 0 ? positive : negative;
    value = cap * std::tanh(value / cap);
  }
  return {{3, y}};
}

// Each row takes in a gated share of the one before it, as that one was.
ReferenceResults smear_gate(const ReferenceCall& c) {
  const Numbers x = c[0], tokens = c[1], weight = c[2];
  Numbers y = x;
  const std::size_t width = index(c.dim(0, 1));
  const auto row_length = static_cast<std::size_t>(c.attribute("row_length"));
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    if (t % row_length == 0 || tokens[t] == c.attribute("document_start")) continue;
    double logit = 0;
    for (std::size_t j = 0; j < weight.size(); ++j) logit += weight[j] * x[t * width + j];
    const double share = c[3][0] * sigmoid(logit);
    for (std::size_t j = 0; j < width; ++j) y[t * width + j] += share * x[(t - 1) * width + j];
  }
  return {{4, y}};
}

ReferenceResults cross_entropy(const ReferenceCall& c) {
  const Numbers logits = c[0], targets = c[1];
  const std::int64_t columns = c.dim(0, 1);
  Numbers loss, lse;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    const auto row = logits.begin() + static_cast<std::int64_t>(t) * columns;
    const double most = *std::max_element(row, row + columns);
    double sum = 0;
    for (auto at = row; at != row + columns; ++at) sum += std::exp(*at - most);
    lse.push_back(most + std::log(sum));
    loss.push_back(targets[t] < 0 ? 0 : lse.back() - row[static_cast<std::int64_t>(targets[t])]);
  }
  return {{2, loss}, {3, lse}};
}

ReferenceResults cast(const ReferenceCall& c) {
  return {{1, c[0]}};
}

const std::map<std::string, Formula, std::less<>> formulas = {
    {"asymmetric_softcap_fwd", asymmetric_softcap},
    {"attention_bidirectional_fwd", attention},
    {"attention_fwd", attention},
    {"attention_stable_fwd", attention},  // but for rounding the same
    {"axpby", axpby},
    {"cast", cast},
    {"concat_rows_fwd", concat_rows},
    {"cross_entropy_fwd", cross_entropy},
    {"embedding_fwd", embedding},
    {"head_gate_xsa_fwd", head_gate_xsa},
    {"lane_chain_fwd", lane_chain},
    {"lane_mean_norm_fwd", lane_mean_norm},
    {"lane_merge_fwd", lane_merge},
    {"leaky_relu_squared_fwd", leaky_relu_squared},
    {"linear_leaky_relu_squared_fwd", linear_leaky_relu_squared},
    {"matmul", matmul},
    {"widened_matmul", widened_matmul},
    {"qk_norm_rope_fwd", qk_norm_rope},
    {"qkv_split_norm_rope_fwd", qkv_split_norm_rope},
    {"residual_chain_fwd", residual_chain},
    {"residual_mix_norm_fwd", residual_mix_norm},
    {"rms_norm_fwd", rms_norm},
    {"row_bias_fwd", row_bias},
    {"scale_rows_fwd", scale_rows},
    {"scaled_add_norm_fwd", scaled_add_norm},
    {"silu_gate_fwd", silu_gate},
    {"skip_merge_fwd", skip_merge},
    {"smear_gate_fwd", smear_gate},
    {"softcap_fwd", softcap},
    {"weighted_rms_norm_fwd", weighted_rms_norm},
};

}  // namespace

double ReferenceCall::attribute(std::string_view name) const {
  const auto found = std::ranges::find(call->attributes, name, &Attribute::name);
  return found == call->attributes.end() ? 0 : found->value;
}

Formula formula_of(const ReferenceCall& call) {
  const auto found = formulas.find(call.call->kernel);
  if (found == formulas.end()) return nullptr;
  const bool product = call.call->kernel == "matmul" || call.call->kernel == "widened_matmul";
  const bool adds = (product && call.attribute("beta") != 0) ||
                    (call.call->kernel == "axpby" && call.attribute("accumulate_y") != 0);
  return adds ? nullptr : found->second;
}

}  // namespace mulligan::doctor
