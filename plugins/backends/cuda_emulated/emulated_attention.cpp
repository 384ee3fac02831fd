#include "plugins/backends/cuda_emulated/emulated_device.h"

#include <mulligan/kernel.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace mulligan::cuda {
namespace {

using sdk::bfloat16;

// One row of one query head: where its first token lies in the tensors, and how far its tokens are apart.
struct Row {
  std::int64_t query, kv, stats;  // elements
  std::int64_t query_step, kv_step, stats_step, length;
};

// Calls body(row, head) for every row and query head. Throws std::runtime_error when starts and lengths lead
// out of the tensors or beyond the longest row.
template <typename Body>
void each_row(const AttentionShape& s, const AttentionArguments& a, Body&& body) {
  const std::int64_t query_step = s.query_heads * s.width, kv_step = s.kv_heads * s.width;
  const auto* query_starts = static_cast<const std::int32_t*>(a.query_starts.address);
  const auto* kv_starts = static_cast<const std::int32_t*>(a.kv_starts.address);
  const auto* stats_starts = static_cast<const std::int32_t*>(a.stats_starts.address);
  const auto* lengths = static_cast<const std::int32_t*>(a.lengths.address);
  for (std::int64_t b = 0; b < s.rows; ++b) {
    const std::int64_t length = s.packed ? lengths[b] : s.longest;
    const std::int64_t query = s.packed ? query_starts[b] : b * s.longest * query_step,
                       kv = s.packed ? kv_starts[b] : b * s.longest * kv_step,
                       stats = s.packed ? stats_starts[b] : b * s.longest * s.query_heads;
    if (length < 0 || length > s.longest || query < 0 ||
        query + length * query_step > s.tokens * query_step || kv < 0 ||
        kv + length * kv_step > s.tokens * kv_step || stats < 0 ||
        stats + length * s.query_heads > s.tokens * s.query_heads ||
        (s.packed && query_starts[b + 1] - query != length * query_step)) {
      throw std::runtime_error("emulated attention: row " + std::to_string(b) + " of " +
                               std::to_string(length) +
                               " tokens lies outside of its tensors or is longer than planned");
    }
    for (std::int64_t head = 0; head < s.query_heads; ++head) {
      const std::int64_t kv_head = head / (s.query_heads / s.kv_heads);
      const std::int64_t stats_step = s.packed ? s.query_heads : 1;
      body(Row{query + head * s.width, kv + kv_head * s.width, stats + head * (s.packed ? 1 : s.longest),
               query_step, kv_step, stats_step, length});
    }
  }
}

float dot(const bfloat16* a, const bfloat16* b, std::int64_t width) {
  float sum = 0;
  for (std::int64_t i = 0; i < width; ++i) sum += static_cast<float>(a[i]) * static_cast<float>(b[i]);
  return sum;
}

}  // namespace

std::size_t EmulatedAttention::workspace_bytes() const {
  return shape_.backward ? static_cast<std::size_t>(shape_.tokens * shape_.query_heads * shape_.width) * 4
                         : 0;
}

void EmulatedAttention::run(const AttentionArguments& arguments, void* workspace) {
  device_.enqueue([this, a = arguments, workspace] {
    device_.note("library call: attention");
    const DeviceMemory& memory = device_.memory();
    for (const DeviceArgument* in : {&a.q, &a.k, &a.v})
      memory.require_known(in->address, in->bytes, "attention reads of q, k or v");
    if (shape_.packed) {
      const auto rows = static_cast<std::size_t>(shape_.rows);
      for (const DeviceArgument* starts : {&a.query_starts, &a.kv_starts, &a.stats_starts})
        memory.require_known(starts->address, (rows + 1) * 4, "attention reads of the starts of rows");
      memory.require_known(a.lengths.address, rows * 4, "attention reads of the lengths of rows");
    }
    if (shape_.backward) {
      for (const DeviceArgument* in : {&a.o, &a.d_o, &a.stats})
        memory.require_known(in->address, in->bytes, "attention reads of o, do or stats");
      memory.marks(workspace, workspace_bytes());
      backward(a, static_cast<float*>(workspace));
    } else {
      forward(a);
    }
    const auto mark = [&memory](const DeviceArgument& out) {
      std::memset(memory.marks(out.address, out.bytes), 1, out.bytes);
    };
    if (shape_.backward) {
      for (const DeviceArgument* out : {&a.dq, &a.dk, &a.dv}) mark(*out);
    } else {
      mark(a.o);
      mark(a.stats);
    }
  });
}

void EmulatedAttention::forward(const AttentionArguments& a) const {
  const auto *q = static_cast<const bfloat16*>(a.q.address), *k = static_cast<const bfloat16*>(a.k.address),
             *v = static_cast<const bfloat16*>(a.v.address);
  auto* o = static_cast<bfloat16*>(a.o.address);
  auto* stats = static_cast<float*>(a.stats.address);
  const auto scale = static_cast<float>(shape_.scale);
  std::vector<float> weights, sums(static_cast<std::size_t>(shape_.width));
  each_row(shape_, a, [&](const Row& row) {
    for (std::int64_t i = 0; i < row.length; ++i) {
      weights.clear();
      float highest = -INFINITY, total = 0;
      for (std::int64_t j = 0; j <= i; ++j) {
        weights.push_back(
            scale * dot(q + row.query + i * row.query_step, k + row.kv + j * row.kv_step, shape_.width));
        highest = std::max(highest, weights.back());
      }
      std::fill(sums.begin(), sums.end(), 0.0f);
      for (std::int64_t j = 0; j <= i; ++j) {
        const float weight = std::exp(weights[static_cast<std::size_t>(j)] - highest);
        total += weight;
        const bfloat16* value = v + row.kv + j * row.kv_step;
        for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += weight * static_cast<float>(value[c]);
      }
      bfloat16* out = o + row.query + i * row.query_step;
      for (std::size_t c = 0; c < sums.size(); ++c) out[c] = bfloat16(sums[c] / total);
      stats[row.stats + i * row.stats_step] = highest + std::log(total);
    }
  });
}

void EmulatedAttention::backward(const AttentionArguments& a, float* dq) const {
  const auto *q = static_cast<const bfloat16*>(a.q.address), *k = static_cast<const bfloat16*>(a.k.address),
             *v = static_cast<const bfloat16*>(a.v.address), *o = static_cast<const bfloat16*>(a.o.address),
             *d_o = static_cast<const bfloat16*>(a.d_o.address);
  const auto* stats = static_cast<const float*>(a.stats.address);
  const auto queries = static_cast<std::size_t>(shape_.tokens * shape_.query_heads * shape_.width),
             keys = static_cast<std::size_t>(shape_.tokens * shape_.kv_heads * shape_.width);
  std::fill_n(dq, queries, 0.0f);
  std::vector<float> dk(keys, 0.0f), dv(keys, 0.0f);
  const auto scale = static_cast<float>(shape_.scale);
  const std::int64_t width = shape_.width;
  each_row(shape_, a, [&](const Row& row) {
    for (std::int64_t i = 0; i < row.length; ++i) {
      const std::int64_t at = row.query + i * row.query_step;
      const float along = dot(o + at, d_o + at, width);
      for (std::int64_t j = 0; j <= i; ++j) {
        const std::int64_t key = row.kv + j * row.kv_step;
        const float p = std::exp(scale * dot(q + at, k + key, width) - stats[row.stats + i * row.stats_step]);
        const float ds = scale * p * (dot(d_o + at, v + key, width) - along);
        for (std::int64_t c = 0; c < width; ++c) {
          dq[at + c] += ds * static_cast<float>(k[key + c]);
          dk[static_cast<std::size_t>(key + c)] += ds * static_cast<float>(q[at + c]);
          dv[static_cast<std::size_t>(key + c)] += p * static_cast<float>(d_o[at + c]);
        }
      }
    }
  });
  const auto store = [](const float* from, std::size_t count, const DeviceArgument& to) {
    auto* out = static_cast<bfloat16*>(to.address);
    for (std::size_t i = 0; i < count; ++i) out[i] = bfloat16(from[i]);
  };
  store(dq, queries, a.dq);
  store(dk.data(), keys, a.dk);
  store(dv.data(), keys, a.dv);
}

}  // namespace mulligan::cuda
