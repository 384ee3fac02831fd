// The tiles of the attention_fwd kernels and the work on one block of queries (attention_fwd.cpp says how).
// What a kernel subtracts from the scores, and what it divides by, is its Softmax.
#pragma once

#include <cmath>

#include "kernels/attention/cpu_shape.h"
#include "plugins/backends/cpu/math/tile_softmax.h"

namespace mulligan::cpu {

// Subtracts the running maximum; divides by the sum of the weights.
struct PlainSoftmax {
  static constexpr bool kPlain = true;
};

// One thread's tiles, and the work on one block of queries.
template <typename T, typename Math, typename Softmax>
class ForwardWorker {
 public:
  using Arguments = shapes::AttentionForward;  // the other forward kernel has the same
  using Word = typename Math::Word;
  static constexpr int kStep = Math::kStep;
  static constexpr std::int64_t kKeyWords = kTile / kStep;

  ForwardWorker(const AttentionShape& shape, const Softmax& softmax, void* scratch)
      : shape_(shape),
        softmax_(softmax),
        key_words_(round_up((shape.width + kStep - 1) / kStep, kLanes)),
        value_words_(round_up(shape.width, kLanes)) {
    ScratchLayout layout(scratch);
    queries_ = layout.take<Word>(shape.group * key_words_ * kTile);
    output_ = layout.take<float>(shape.group * value_words_ * kTile);
    maximum_ = layout.take<float>(shape.group * kTile);
    sum_ = layout.take<float>(shape.group * kTile);
    normalizer_ = Softmax::kPlain ? nullptr : layout.take<float>(shape.group * kTile);
    rescale_ = layout.take<float>(kTile);
    keys_ = layout.take<Word>(kTile * key_words_);
    values_ = layout.take<Word>(kTile / kStep * value_words_);
    scores_ = layout.take<float>(kTile * kTile);
    probabilities_ = kStep == 1 ? reinterpret_cast<Word*>(scores_) : layout.take<Word>(kTile / kStep * kTile);
    rows_ = layout.take<float>(kTile * std::max(key_words_, value_words_));
    value_columns_ = Math::kMatrixUnit ? layout.take<Word>(value_words_ * kKeyWords) : nullptr;
    scratch_bytes_ = layout.used();
  }

  std::size_t scratch_bytes() const { return scratch_bytes_; }

  void run(const Launch& launch, const QueryBlock& block, std::int64_t kv_head) {
    const T* k = launch.data<const T>(Arguments::k);
    const T* v = launch.data<const T>(Arguments::v);
    vectors_ = (block.count + kLanes - 1) / kLanes;
    load_queries(launch.data<const T>(Arguments::q), block, kv_head);
    const std::int64_t end = block.keys_end(shape_.sight);
    for (std::int64_t begin = block.segment_begin; begin < end; begin += kTile) {
      const bool diagonal = block.on_diagonal(shape_.sight, begin);
      const std::int64_t count = std::min<std::int64_t>(kTile, block.segment_end - begin);
      const std::int64_t at = shape_.kv_at(begin, kv_head);
      pack_rows<Math>(k + at, shape_.kv_stride(), count, shape_.width, keys_, key_words_);
      pack_row_words<Math>(v + at, shape_.kv_stride(), count, shape_.width, values_, value_words_);
      if constexpr (Math::kMatrixUnit) {
        transpose_words(values_, value_words_, kKeyWords, value_words_, value_columns_, kKeyWords);
      }
      for (std::int64_t g = 0; g < shape_.group; ++g) {
        if constexpr (Math::kMatrixUnit) {
          unit_tile(g, count, begin == block.segment_begin, diagonal);
        } else if (diagonal) {
          diagonal_tile(g, count, begin == block.segment_begin);
        } else {
          full_tile(g, count, begin == block.segment_begin);
        }
      }
    }
    for (std::int64_t g = 0; g < shape_.group; ++g) store(launch, block, kv_head * shape_.group + g, g);
  }

 private:
  void load_queries(const T* q, const QueryBlock& block, std::int64_t kv_head) {
    Word* rows = reinterpret_cast<Word*>(rows_);
    for (std::int64_t g = 0; g < shape_.group; ++g) {
      pack_rows<Math>(q + shape_.q_at(block.begin, kv_head * shape_.group + g), shape_.q_stride(),
                      block.count, shape_.width, rows, key_words_);
      std::fill(rows + block.count * key_words_, rows + vectors_ * kLanes * key_words_, Word{});
      transpose_words(rows, key_words_, vectors_ * kLanes, key_words_, queries_ + g * key_words_ * kTile,
                      kTile);
    }
    std::fill_n(maximum_, shape_.group * kTile, kMaskedScore);
    std::fill_n(sum_, shape_.group * kTile, 0.0f);
    if constexpr (!Softmax::kPlain) std::fill_n(normalizer_, shape_.group * kTile, 0.0f);
  }

  void full_tile(std::int64_t g, std::int64_t count, bool first) {
    tile_matmul<Math, Update::set, Order::rows>(count, vectors_, matmul_words(), keys_, key_words_,
                                                queries_ + g * key_words_ * kTile, kTile, scores_, kTile);
    for (std::int64_t c = 0; c < vectors_; ++c) softmax(g, c, count);
    const auto accumulate = first ? &tile_matmul<Math, Update::set, Order::columns>
                                  : &tile_matmul<Math, Update::scale_add, Order::columns>;
    accumulate(shape_.width, vectors_, (count + kStep - 1) / kStep, values_, value_words_, probabilities_,
               kTile, output_ + g * value_words_ * kTile, kTile, rescale_);
  }

  // full_tile and diagonal_tile for the matrix unit: whole matmuls, with the values as rows of channels.
  void unit_tile(std::int64_t g, std::int64_t count, bool first, bool diagonal) {
    tile_matmul<Math, Update::set, Order::rows>(count, vectors_, key_words_, keys_, key_words_,
                                                queries_ + g * key_words_ * kTile, kTile, scores_, kTile);
    if (diagonal) mask_diagonal_tile(scores_, count, vectors_);
    for (std::int64_t c = 0; c < vectors_; ++c) softmax(g, c, count);
    const auto accumulate = first ? &tile_matmul<Math, Update::set, Order::rows>
                                  : &tile_matmul<Math, Update::scale_add, Order::rows>;
    accumulate(value_words_, vectors_, (count + kStep - 1) / kStep, value_columns_, kKeyWords, probabilities_,
               kTile, output_ + g * value_words_ * kTile, kTile, rescale_);
  }

  // Keys of sub-block s are seen by the query columns from sub-block s on:
  // the rest is neither computed nor read.
  void diagonal_tile(std::int64_t g, std::int64_t count, bool first) {
    for (std::int64_t s = 0; s * kLanes < count; ++s) {
      tile_matmul<Math, Update::set, Order::rows>(
          std::min<std::int64_t>(kLanes, count - s * kLanes), vectors_ - s, matmul_words(),
          keys_ + s * kLanes * key_words_, key_words_, queries_ + g * key_words_ * kTile + s * kLanes, kTile,
          scores_ + s * kLanes * (kTile + 1), kTile);
    }
    mask_diagonal(scores_, count);
    for (std::int64_t c = 0; c < vectors_; ++c) softmax(g, c, std::min(count, (c + 1) * kLanes));
    for (std::int64_t s = 0; s * kLanes < count; ++s) {
      const auto accumulate = s > 0   ? &tile_matmul<Math, Update::add, Order::columns>
                              : first ? &tile_matmul<Math, Update::set, Order::columns>
                                      : &tile_matmul<Math, Update::scale_add, Order::columns>;
      const std::int64_t rows = std::min<std::int64_t>(kLanes, count - s * kLanes);
      accumulate(shape_.width, vectors_ - s, (rows + kStep - 1) / kStep,
                 values_ + s * kLanes / kStep * value_words_, value_words_,
                 probabilities_ + s * kLanes / kStep * kTile + s * kLanes, kTile,
                 output_ + g * value_words_ * kTile + s * kLanes, kTile, rescale_ + s * kLanes);
    }
  }

  // One vector of query columns: new maximum, probabilities of `count` keys, sum,
  // factor for what was summed before.
  void softmax(std::int64_t g, std::int64_t c, std::int64_t count) {
    float* scores = scores_ + c * kLanes;
    float* maximum = maximum_ + g * kTile + c * kLanes;
    float* sum = sum_ + g * kTile + c * kLanes;
    FloatVector even = load_vector(scores), odd = even;
    for (std::int64_t r = 1; r < count; r += 2) {
      even = larger(even, load_vector(scores + r * kTile));
      odd = larger(odd, load_vector(scores + std::min(r + 1, count - 1) * kTile));
    }
    const FloatVector before = load_vector(maximum);
    const FloatVector scale = broadcast(shape_.scale_log2e);
    FloatVector highest = larger(even, odd) * scale;
    if constexpr (!Softmax::kPlain)
      highest = softmax_.shifted(highest, scale, scores, count, larger(even, odd) > kMaskedScore / 2);
    const FloatVector now = larger(before, highest);
    const FloatVector rescale = exp2_vector(before - now);
    FloatVector total = load_vector(sum) * rescale;
    [[maybe_unused]] FloatVector rounded_total{};
    if constexpr (!Softmax::kPlain)
      rounded_total = load_vector(normalizer_ + g * kTile + c * kLanes) * rescale;
    Word* to = probabilities_ + c * kLanes;
    for (std::int64_t r = 0; r < count; r += 2, to += 2 / kStep * kTile) {
      FloatVector first = exp2_vector(load_vector(scores + r * kTile) * scale - now);
      total += first;
      if constexpr (!Softmax::kPlain) rounded_total += first = rounded<T>(first);
      FloatVector second{};
      if (r + 1 < count) {
        second = exp2_vector(load_vector(scores + (r + 1) * kTile) * scale - now);
        total += second;
        if constexpr (!Softmax::kPlain) rounded_total += second = rounded<T>(second);
      }
      store_row_words(to, first, second);
      if (kStep == 1 && r + 1 < count) store_row_words(to + kTile, second, second);
    }
    store_vector(maximum, now);
    store_vector(sum, total);
    if constexpr (!Softmax::kPlain) store_vector(normalizer_ + g * kTile + c * kLanes, rounded_total);
    store_vector(rescale_ + c * kLanes, rescale);
  }

  void store(const Launch& launch, const QueryBlock& block, std::int64_t head, std::int64_t g) {
    T* o = launch.data<T>(Arguments::o) + shape_.q_at(block.begin, head);
    float* lse = launch.data<float>(Arguments::lse) + block.begin * shape_.heads + head;
    transpose_words(output_ + g * value_words_ * kTile, kTile, value_words_, vectors_ * kLanes, rows_,
                    value_words_);
    for (std::int64_t i = 0; i < block.count; ++i, o += shape_.q_stride()) {
      const float sum = sum_[g * kTile + i];
      float inverse = 1.0f / sum;
      float* row = rows_ + i * value_words_;
      if constexpr (!Softmax::kPlain) {
        if (softmax_.round_normalizer) inverse = 1.0f / normalizer_[g * kTile + i];
        if (softmax_.round_sums) {
          for (std::int64_t j = 0; j < shape_.width; ++j) row[j] = static_cast<float>(T(row[j]));
        }
      }
      for (std::int64_t j = 0; j < shape_.width; ++j) o[j] = T(row[j] * inverse);
      lse[i * shape_.heads] =
          static_cast<float>((maximum_[g * kTile + i] + std::log2(sum)) * 0.6931471805599453);
    }
  }

  std::int64_t matmul_words() const { return (shape_.width + kStep - 1) / kStep; }

  const AttentionShape& shape_;
  const Softmax& softmax_;
  std::int64_t key_words_,
      value_words_;           // words of a row of keys; elements of a row of values; padded to vectors
  std::int64_t vectors_ = 0;  // vectors that hold the block's queries
  Word *queries_, *keys_, *values_, *value_columns_, *probabilities_;
  float *output_, *maximum_, *sum_, *normalizer_, *rescale_, *scores_, *rows_;
  std::size_t scratch_bytes_;
  [[no_unique_address]] typename Math::Registers registers_;
};

// check() and run() of a kernel whose first arguments are those of attention_fwd.
template <typename Softmax>
std::size_t forward_workspace(const Launch& call) {
  const AttentionShape shape(call);
  const Softmax softmax{};
  const std::size_t scratch =
      dispatch_math(call.dtype(AttentionShape::Inputs::q), [&]<typename T, typename Math>() {
        return ForwardWorker<T, Math, Softmax>(shape, softmax, nullptr).scratch_bytes();
      });
  return SegmentBlocks::workspace_bytes(shape.segments) + scratch * static_cast<std::size_t>(thread_count());
}

template <typename Softmax>
void run_forward(const Launch& launch, const Softmax& softmax, Sight sight = Sight::causal) {
  const AttentionShape shape(launch, sight);
  const SegmentBlocks blocks(shape, launch.data<const std::int32_t>(AttentionShape::Inputs::cu_seqlens),
                             launch.workspace<void>());
  std::byte* scratch = launch.workspace<std::byte>() + SegmentBlocks::workspace_bytes(shape.segments);
  dispatch_math(launch.dtype(AttentionShape::Inputs::q), [&]<typename T, typename Math>() {
    using Worker = ForwardWorker<T, Math, Softmax>;
    const std::size_t bytes = Worker(shape, softmax, nullptr).scratch_bytes();
    launch.parallel_for(blocks.count() * shape.kv_heads, 1, [&](std::int64_t begin, std::int64_t end) {
      Worker worker(shape, softmax, scratch + bytes * static_cast<std::size_t>(thread_index()));
      for (std::int64_t task = begin; task < end; ++task) {
        // From the last block on: inside a segment later queries see more keys,
        // and long tasks should start first.
        worker.run(launch, blocks.block(blocks.count() - 1 - task / shape.kv_heads), task % shape.kv_heads);
      }
    });
  });
}

}  // namespace mulligan::cpu
