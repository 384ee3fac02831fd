// The tiles of attention_bwd and the work on one pair of a query block and a key
// block (formulas: attention_bwd.cpp).
#pragma once

#include <cmath>

#include "kernels/attention/cpu_shape.h"
#include "plugins/backends/cpu/math/tile_softmax.h"

namespace mulligan::cpu {

// Gradients of one kv head in f32, where they are summed: the output itself, or workspace.
struct KeyGradients {
  float* dk;
  float* dv;
  std::int64_t stride;  // floats from one token to the next
};

// One thread's tiles. Score tiles are S[key, query]. "Row words" run along rows of the tensor, "column words"
// along its width; for F32Math both are single floats and share their memory.
template <typename T, typename Math>
class BackwardWorker {
 public:
  using Word = typename Math::Word;
  static constexpr int kStep = Math::kStep;

  struct Inputs {
    const T *q, *k, *v, *o, *d_o;
    const float* lse;
    float softmax_scale;
  };

  BackwardWorker(const AttentionShape& shape, const Inputs& inputs, void* scratch)
      : shape_(shape),
        in_(inputs),
        width_words_((shape.width + kStep - 1) / kStep),
        row_ld_(kStep == 1 ? round_up(shape.width, kLanes) : round_up(width_words_, kLanes)),
        ld_(round_up(shape.width, kLanes)) {
    ScratchLayout layout(scratch);
    for (Word** tile : {&queries_, &d_outputs_}) *tile = layout.take<Word>(shape.group * row_ld_ * kTile);
    for (Word** tile : {&query_rows_, &d_output_rows_})
      *tile = layout.take<Word>(shape.group * kTile / kStep * ld_);
    d_queries_ = layout.take<float>(shape.group * kTile * ld_);
    lse_ = layout.take<float>(shape.group * kTile);
    delta_ = layout.take<float>(shape.group * kTile);
    keys_ = layout.take<Word>(kTile * row_ld_);
    values_ = layout.take<Word>(kTile * row_ld_);
    key_rows_ = kStep == 1 ? keys_ : layout.take<Word>(kTile / kStep * ld_);
    scores_ = layout.take<float>(kTile * kTile);
    d_scores_ = layout.take<float>(kTile * kTile);
    p_columns_ = kStep == 1 ? reinterpret_cast<Word*>(scores_) : layout.take<Word>(kTile * kTile / kStep);
    ds_columns_ = kStep == 1 ? reinterpret_cast<Word*>(d_scores_) : layout.take<Word>(kTile * kTile / kStep);
    ds_rows_ = kStep == 1 ? reinterpret_cast<Word*>(d_scores_) : layout.take<Word>(kTile * kTile / kStep);
    packed_ = layout.take<Word>(kTile * row_ld_);
    key_columns_ = Math::kMatrixUnit ? layout.take<Word>(ld_ * kTile / kStep) : nullptr;
    d_query_rows_ = Math::kMatrixUnit ? layout.take<float>(kTile * ld_) : nullptr;
    scratch_bytes_ = layout.used();
  }

  std::size_t scratch_bytes() const { return scratch_bytes_; }

  // Queries, their upstream gradients and softmax statistics, for all query heads of the kv head.
  void load_queries(const QueryBlock& block, std::int64_t kv_head) {
    query_count_ = block.count;
    vectors_ = (block.count + kLanes - 1) / kLanes;
    for (std::int64_t g = 0; g < shape_.group; ++g) {
      const std::int64_t head = kv_head * shape_.group + g, at = shape_.q_at(block.begin, head);
      load_transposed(in_.q + at, queries_ + g * row_ld_ * kTile);
      load_transposed(in_.d_o + at, d_outputs_ + g * row_ld_ * kTile);
      const std::int64_t rows_at = g * kTile / kStep * ld_;
      pack_row_words<Math>(in_.q + at, shape_.q_stride(), block.count, shape_.width, query_rows_ + rows_at,
                           ld_);
      pack_row_words<Math>(in_.d_o + at, shape_.q_stride(), block.count, shape_.width,
                           d_output_rows_ + rows_at, ld_);
      for (std::int64_t i = 0; i < vectors_ * kLanes; ++i) {
        // Columns beyond the block get probability 0.
        const bool real = i < block.count;
        lse_[g * kTile + i] = real ? in_.lse[(block.begin + i) * shape_.heads + head] * 1.44269504f : 1e30f;
        delta_[g * kTile + i] = real ? row_dot(at + i * shape_.q_stride()) : 0.0f;
      }
    }
  }

  void load_keys(std::int64_t begin, std::int64_t count, std::int64_t kv_head) {
    key_count_ = count;
    const std::int64_t at = shape_.kv_at(begin, kv_head);
    pack_rows<Math>(in_.k + at, shape_.kv_stride(), count, shape_.width, keys_, row_ld_);
    pack_rows<Math>(in_.v + at, shape_.kv_stride(), count, shape_.width, values_, row_ld_);
    if constexpr (kStep > 1) {
      pack_row_words<Math>(in_.k + at, shape_.kv_stride(), count, shape_.width, key_rows_, ld_);
    }
    if constexpr (Math::kMatrixUnit) {
      transpose_words(key_rows_, ld_, kTile / kStep, ld_, key_columns_, kTile / kStep);
    }
  }

  void clear_query_gradients() { std::fill_n(d_queries_, shape_.group * kTile * ld_, 0.0f); }

  // The loaded queries against the loaded keys. kKeys: adds to the key block's gradients; kQueries: to the
  // queries'. A diagonal tile computes and reads only sub-blocks of kLanes positions that the causal mask
  // lets through; the matrix unit computes the whole tile.
  template <bool kKeys, bool kQueries>
  void multiply(bool diagonal, const KeyGradients& gradients) {
    const bool triangle = diagonal && !Math::kMatrixUnit;
    const std::int64_t height = triangle ? kLanes : kTile;
    for (std::int64_t g = 0; g < shape_.group; ++g) {
      for (std::int64_t r = 0; r < key_count_; r += height) {
        const std::int64_t c = triangle ? r : 0;
        score_matmuls(g, r, c, std::min(height, key_count_ - r));
      }
      if (triangle) mask_diagonal(scores_, key_count_);
      if (diagonal && !triangle) mask_diagonal_tile(scores_, key_count_, vectors_);
      for (std::int64_t c = 0; c < vectors_; ++c) {
        differentiate(g, c, triangle ? std::min<std::int64_t>(key_count_, (c + 1) * kLanes) : key_count_);
      }
      for (std::int64_t r = 0; r < key_count_; r += height) {
        const std::int64_t c = triangle ? r : 0, rows = std::min(height, key_count_ - r);
        if constexpr (kKeys) key_matmuls(g, r, c, rows, gradients);
        if constexpr (kQueries) query_matmuls(g, r, c, rows);
      }
    }
  }

  // dq of the loaded block, one row of ld() floats per query, by query head of the group.
  const float* query_gradients(std::int64_t g) {
    const float* sums = d_queries_ + g * kTile * ld_;
    if constexpr (!Math::kMatrixUnit) return sums;
    transpose_words(sums, kTile, ld_, kTile, d_query_rows_, ld_);
    return d_query_rows_;
  }
  std::int64_t ld() const { return ld_; }

 private:
  void load_transposed(const T* from, Word* to) {
    pack_rows<Math>(from, shape_.q_stride(), query_count_, shape_.width, packed_, row_ld_);
    std::fill(packed_ + query_count_ * row_ld_, packed_ + vectors_ * kLanes * row_ld_, Word{});
    transpose_words(packed_, row_ld_, vectors_ * kLanes, row_ld_, to, kTile);
  }

  // sum over channels of o * do.
  float row_dot(std::int64_t at) const {
    float partial[kLanes] = {};
    std::int64_t j = 0;
    for (; j + kLanes <= shape_.width; j += kLanes) {
      for (int lane = 0; lane < kLanes; ++lane)
        partial[lane] += in_.o[at + j + lane] * in_.d_o[at + j + lane];
    }
    for (int lane = 0; j + lane < shape_.width; ++lane)
      partial[lane] += in_.o[at + j + lane] * in_.d_o[at + j + lane];
    float sum = 0.0f;
    for (int lane = 0; lane < kLanes; ++lane) sum += partial[lane];
    return sum;
  }

  // S and dP of keys [r, r + rows) and the query columns from c on.
  void score_matmuls(std::int64_t g, std::int64_t r, std::int64_t c, std::int64_t rows) {
    const std::int64_t vectors = vectors_ - c / kLanes;
    const std::int64_t words = Math::kMatrixUnit ? row_ld_ : width_words_;  // the padding is zero
    tile_matmul<Math, Update::set, Order::rows>(rows, vectors, words, keys_ + r * row_ld_, row_ld_,
                                                queries_ + g * row_ld_ * kTile + c, kTile,
                                                scores_ + r * kTile + c, kTile);
    tile_matmul<Math, Update::set, Order::rows>(rows, vectors, words, values_ + r * row_ld_, row_ld_,
                                                d_outputs_ + g * row_ld_ * kTile + c, kTile,
                                                d_scores_ + r * kTile + c, kTile);
  }

  // P and dS in words, for one vector of query columns and the first `count` keys.
  void differentiate(std::int64_t g, std::int64_t c, std::int64_t count) {
    const FloatVector lse = load_vector(lse_ + g * kTile + c * kLanes);
    const FloatVector delta = load_vector(delta_ + g * kTile + c * kLanes);
    const FloatVector scale = broadcast(shape_.scale_log2e), ds_scale = broadcast(in_.softmax_scale);
    for (std::int64_t r = 0; r < count; r += 2) {  // a row of zeros follows an odd last row
      const std::int64_t at = r * kTile + c * kLanes;
      FloatVector p[2] = {}, ds[2] = {};
      for (std::int64_t i = 0; i < 2 && r + i < count; ++i) {
        p[i] = exp2_vector(load_vector(scores_ + at + i * kTile) * scale - lse);
        ds[i] = p[i] * (load_vector(d_scores_ + at + i * kTile) - delta) * ds_scale;
      }
      store_column_words(p_columns_ + at / kStep, kTile / kStep, p[0], p[1]);
      store_column_words(ds_columns_ + at / kStep, kTile / kStep, ds[0], ds[1]);
      if constexpr (kStep > 1) store_row_words(ds_rows_ + r / kStep * kTile + c * kLanes, ds[0], ds[1]);
    }
  }

  // dv += P do, dk += dS q, over the queries from c on.
  void key_matmuls(std::int64_t g, std::int64_t r, std::int64_t c, std::int64_t rows,
                   const KeyGradients& gradients) {
    const std::int64_t words = (query_count_ - c + kStep - 1) / kStep;
    const std::int64_t at = (r * kTile + c) / kStep, operand = (g * kTile + c) / kStep * ld_;
    tile_matmul<Math, Update::add, Order::rows>(rows, ld_ / kLanes, words, p_columns_ + at, kTile / kStep,
                                                d_output_rows_ + operand, ld_,
                                                gradients.dv + r * gradients.stride, gradients.stride);
    tile_matmul<Math, Update::add, Order::rows>(rows, ld_ / kLanes, words, ds_columns_ + at, kTile / kStep,
                                                query_rows_ + operand, ld_,
                                                gradients.dk + r * gradients.stride, gradients.stride);
  }

  // dq of the queries from c on += dS^T k, over keys [r, r + rows). The matrix unit keeps dq transposed,
  // [channel, query], so that the keys are A and dS is B.
  void query_matmuls(std::int64_t g, std::int64_t r, std::int64_t c, std::int64_t rows) {
    if constexpr (Math::kMatrixUnit) {
      return tile_matmul<Math, Update::add, Order::rows>(ld_, vectors_, (rows + kStep - 1) / kStep,
                                                         key_columns_, kTile / kStep, ds_rows_, kTile,
                                                         d_queries_ + g * kTile * ld_, kTile);
    } else {
      tile_matmul<Math, Update::add, Order::columns>(
          query_count_ - c, ld_ / kLanes, (rows + kStep - 1) / kStep, ds_rows_ + r / kStep * kTile + c, kTile,
          key_rows_ + r / kStep * ld_, ld_, d_queries_ + (g * kTile + c) * ld_, ld_);
    }
  }

  const AttentionShape& shape_;
  const Inputs in_;
  std::int64_t width_words_, row_ld_,
      ld_;  // words of a row; the same padded to vectors; elements padded to vectors
  std::int64_t query_count_ = 0, vectors_ = 0, key_count_ = 0;
  Word *queries_, *d_outputs_;         // [group, width words, query], column words, transposed
  Word *query_rows_, *d_output_rows_;  // [group, query words, width], row words
  Word *keys_, *values_, *key_rows_;   // [key, width words] column words; [key words, width] row words
  Word *p_columns_, *ds_columns_;      // [key, query words]
  Word *ds_rows_, *packed_;            // [key words, query]
  Word* key_columns_;                  // [width, key words]; matrix unit only
  float *d_queries_, *lse_, *delta_, *scores_, *d_scores_, *d_query_rows_;
  std::size_t scratch_bytes_;
  [[no_unique_address]] typename Math::Registers registers_;
};

}  // namespace mulligan::cpu
