#include "planted_faults.h"

#include <mulligan/half.hpp>
#include <mulligan/kernel.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

namespace planted {
namespace {

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

// f32 and bf16 as floats, and back.
std::vector<float> read(const mlg_tensor& tensor) {
  const std::int64_t count = tensor.shape[0] * tensor.shape[1] * tensor.shape[2] * tensor.shape[3];
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = tensor.dtype == MLG_F32
                    ? static_cast<const float*>(tensor.data)[i]
                    : static_cast<float>(static_cast<const mulligan::sdk::bfloat16*>(tensor.data)[i]);
  }
  return values;
}
void write(const mlg_tensor& tensor, const std::vector<float>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (tensor.dtype == MLG_F32) {
      static_cast<float*>(tensor.data)[i] = values[i];
    } else {
      static_cast<mulligan::sdk::bfloat16*>(tensor.data)[i] = mulligan::sdk::bfloat16(values[i]);
    }
  }
}

void rotate_wrongly(const Bound& call, const mlg_tensor& heads, std::string_view fault) {
  const std::vector<float> cos = read(call.arguments[1]), sin = read(call.arguments[2]);
  std::vector<float> y = read(heads);
  const std::int64_t groups = heads.shape[1], width = heads.shape[2];
  const auto dims = static_cast<std::int64_t>(call.attribute("rope_dims")), half = dims / 2;
  const auto row_length = static_cast<std::int64_t>(call.attribute("row_length"));
  for (std::int64_t head = 0; head < heads.shape[0] * groups; ++head) {
    if (fault == "rope_head_0" && head % groups == 0) continue;
    float* u = y.data() + head * width;
    const std::int64_t row = head / groups % row_length * half;
    for (std::int64_t j = 0; j < half; ++j) {  // undone
      const float c = cos[at(row + j)], s = sin[at(row + j)];
      const float a = u[j], b = u[j + half];
      u[j] = a * c - b * s;
      u[j + half] = a * s + b * c;
    }
    if (fault == "rope_head_0") continue;
    for (std::int64_t j = 0; j < half; ++j) {
      const float c = cos[at(row + j)], s = sin[at(row + j)];
      const float a = u[2 * j], b = u[2 * j + 1];
      u[2 * j] = a * c + b * s;
      u[2 * j + 1] = -a * s + b * c;
    }
  }
  write(heads, y);
}

}  // namespace

double Bound::attribute(std::string_view name) const {
  const auto found = std::find(attribute_names.begin(), attribute_names.end(), name);
  return found == attribute_names.end()
             ? 0
             : attributes[static_cast<std::size_t>(found - attribute_names.begin())];
}

void wrong_rotation(const Bound& call, std::string_view fault) {
  if (call.kernel == "qk_norm_rope_fwd") return rotate_wrongly(call, call.arguments[4], fault);
  rotate_wrongly(call, call.arguments[4], fault);
  rotate_wrongly(call, call.arguments[5], fault);
}

void wrong_attention(const Bound& call, std::string_view fault) {
  const mlg_tensor &tq = call.arguments[0], &tk = call.arguments[1];
  const std::vector<float> q = read(tq), k = read(tk), v = read(call.arguments[2]);
  const auto* boundaries = static_cast<const std::int32_t*>(call.arguments[3].data);
  const std::int64_t tokens = tq.shape[0], heads = tq.shape[1], kv = tk.shape[1], width = tq.shape[2];
  std::vector<std::int64_t> begin(at(tokens), 0), end(at(tokens), tokens);
  for (std::int64_t i = 0; i + 1 < call.arguments[3].shape[0]; ++i) {
    for (std::int64_t t = boundaries[i]; t < boundaries[i + 1]; ++t) {
      begin[at(t)] = boundaries[i];
      end[at(t)] = boundaries[i + 1];
    }
  }
  std::vector<float> out(q.size(), 0);
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::int64_t first = fault == "across_documents" ? 0 : begin[at(t)];
    const std::int64_t last = fault == "not_causal" ? end[at(t)] : t + 1;
    for (std::int64_t h = 0; h < heads; ++h) {
      std::vector<double> weights;
      double most = -1e30, sum = 0;
      for (std::int64_t j = first; j < last; ++j) {
        double dot = 0;
        for (std::int64_t i = 0; i < width; ++i)
          dot += static_cast<double>(q[at((t * heads + h) * width + i)]) *
                 static_cast<double>(k[at((j * kv + h / (heads / kv)) * width + i)]);
        weights.push_back(dot * call.attribute("softmax_scale"));
        most = std::max(most, weights.back());
      }
      for (double& weight : weights) sum += weight = std::exp(weight - most);
      for (std::int64_t j = first; j < last; ++j) {
        for (std::int64_t i = 0; i < width; ++i)
          out[at((t * heads + h) * width + i)] += static_cast<float>(weights[at(j - first)] / sum) *
                                                  v[at((j * kv + h / (heads / kv)) * width + i)];
      }
    }
  }
  write(call.arguments[4], out);
}

void unnormed_lane_mean(const Bound& call) {
  std::vector<std::vector<float>> in;
  for (std::size_t i = 0; i < 8; ++i) in.push_back(read(call.arguments[i]));
  const auto& [lane0, lane1, a, m, attn, mlp, rho, post] =
      std::tie(in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7]);
  std::vector<float> mean(lane0.size());
  for (std::size_t i = 0; i < mean.size(); ++i) {
    const float x = attn[i % attn.size()] * a[i], y = mlp[i % mlp.size()] * m[i];
    mean[i] = (rho[0] * lane0[i] + (post[0] + post[1]) * x + (post[2] + post[3]) * y + rho[1] * lane1[i]) / 2;
  }
  write(call.arguments[8], mean);
}

void copied(const Bound& call, std::size_t result) {
  write(call.arguments[result], read(call.arguments[0]));
}

float bf16_bits_as_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t half = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;  // round to nearest even
  return mulligan::sdk::half_value(static_cast<std::uint16_t>(half));
}

}  // namespace planted
