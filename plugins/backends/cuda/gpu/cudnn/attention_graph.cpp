#include "plugins/backends/cuda/gpu/cudnn/attention_graph.h"

#include <utility>

namespace mulligan::cuda::cudnn {
namespace {

using Tensor = Graph::Tensor;

class Builder {
 public:
  Builder(const Functions& functions, const AttentionShape& shape)
      : made_{Graph(functions), {}, {}, {}},
        shape_(shape),
        b_(shape.rows),
        heads_(shape.query_heads),
        kv_heads_(shape.kv_heads),
        s_(shape.longest),
        d_(shape.width) {
    if (!shape.packed) return;
    query_starts_ = in_memory(kQueryStarts, starts());
    kv_starts_ = in_memory(kKvStarts, starts());
    stats_starts_ = in_memory(kStatsStarts, starts());
    lengths_ = in_memory(kLengths, {{b_, 1, 1, 1}, {1, 1, 1, 1}, CUDNN_DATA_INT32});
  }

  AttentionGraph forward() {
    const Tensor q = in_memory(kQ, tokens(heads_), query_starts_),
                 k = in_memory(kK, transposed(tokens(kv_heads_)), kv_starts_),
                 v = in_memory(kV, tokens(kv_heads_), kv_starts_);
    const Tensor o = in_memory(kO, tokens(heads_), query_starts_);
    const Tensor stats = in_memory(kStats, stats_spec(), stats_starts_);
    const Tensor scores = masked(scaled_scores(q, k));
    const Tensor highest = between(per_token());
    graph().reduce(CUDNN_REDUCE_TENSOR_MAX, scores, highest);
    const Tensor weights = apply(CUDNN_POINTWISE_EXP, apply(CUDNN_POINTWISE_SUB, scores, highest));
    const Tensor sum = between(per_token());
    graph().reduce(CUDNN_REDUCE_TENSOR_ADD, weights, sum);
    const Tensor log = between(per_token());
    graph().add(Graph::Pointwise{.mode = CUDNN_POINTWISE_LOG, .x = sum, .y = log});
    graph().add(Graph::Pointwise{.mode = CUDNN_POINTWISE_ADD, .x = highest, .y = stats, .b = log});
    const Tensor shares = between(scores_spec(CUDNN_DATA_BFLOAT16));
    graph().add(Graph::Pointwise{.mode = CUDNN_POINTWISE_DIV, .x = weights, .y = shares, .b = sum});
    graph().add(Graph::Matmul{.a = shares, .b = v, .c = o, .m = lengths_, .k = lengths_});
    return std::move(made_);
  }

  AttentionGraph backward() {
    const Tensor q = in_memory(kQ, tokens(heads_), query_starts_),
                 k = in_memory(kK, transposed(tokens(kv_heads_)), kv_starts_),
                 v = in_memory(kV, transposed(tokens(kv_heads_)), kv_starts_),
                 o = in_memory(kO, tokens(heads_), query_starts_),
                 d_o = in_memory(kGradO, tokens(heads_), query_starts_),
                 stats = in_memory(kStats, stats_spec(), stats_starts_);
    const Tensor dq = in_memory(kGradQ, tokens(heads_), query_starts_),
                 dk = in_memory(kGradK, tokens(kv_heads_), kv_starts_),
                 dv = in_memory(kGradV, tokens(kv_heads_), kv_starts_);
    const Tensor sum_d = weighted_gradient(d_o, o);

    const Tensor shifted = apply(CUDNN_POINTWISE_SUB, scaled_scores(q, k), stats);
    const Tensor p = apply(CUDNN_POINTWISE_EXP, masked(shifted));
    sum_over_members(transposed_scores(p), d_o, kEachV, dv);

    const Tensor dp = between(scores_spec());
    graph().add(Graph::Matmul{.a = d_o, .b = v, .c = dp, .m = lengths_, .n = lengths_});
    Tensor ds = apply(CUDNN_POINTWISE_MUL, apply(CUDNN_POINTWISE_SUB, dp, sum_d), p);
    ds = apply(CUDNN_POINTWISE_MUL, ds, scale_);
    sum_over_members(transposed_scores(ds), q, kEachK, dk);

    TensorSpec keys = tokens(kv_heads_);
    keys.type = CUDNN_DATA_FLOAT;
    const Tensor k_by_tokens = between(keys, kv_starts_);
    graph().reshape(k, k_by_tokens);
    TensorSpec queries = shape_.packed ? tokens(heads_) : contiguous(s_, d_);
    queries.type = CUDNN_DATA_FLOAT;
    const Tensor sum_q = workspace(kSumQ, queries, query_starts_, heads_ * d_);
    graph().add(Graph::Matmul{.a = ds, .b = k_by_tokens, .c = sum_q, .m = lengths_, .k = lengths_});
    graph().add(Graph::Pointwise{.mode = CUDNN_POINTWISE_IDENTITY, .x = sum_q, .y = dq});
    return std::move(made_);
  }

 private:
  Graph& graph() { return made_.graph; }

  TensorSpec starts() const { return {{b_ + 1, 1, 1, 1}, {1, 1, 1, 1}, CUDNN_DATA_INT32}; }
  // [tokens, heads, d] of memory as [b, heads, s, d].
  TensorSpec tokens(std::int64_t heads) const {
    return {{b_, heads, s_, d_}, {s_ * heads * d_, d_, heads * d_, 1}, CUDNN_DATA_BFLOAT16};
  }
  static TensorSpec transposed(TensorSpec spec) {
    std::swap(spec.extents[2], spec.extents[3]);
    std::swap(spec.strides[2], spec.strides[3]);
    return spec;
  }
  // [b, H, rows, columns], one head after another.
  TensorSpec contiguous(std::int64_t rows, std::int64_t columns,
                        cudnnDataType_t type = CUDNN_DATA_FLOAT) const {
    return {{b_, heads_, rows, columns}, {heads_ * rows * columns, rows * columns, columns, 1}, type};
  }
  TensorSpec scores_spec(cudnnDataType_t type = CUDNN_DATA_FLOAT) const { return contiguous(s_, s_, type); }
  TensorSpec per_token() const { return contiguous(s_, 1); }
  TensorSpec stats_spec() const {
    if (!shape_.packed) return per_token();
    return {{b_, heads_, s_, 1}, {s_ * heads_, 1, heads_, 1}, CUDNN_DATA_FLOAT};
  }

  Tensor in_memory(std::int64_t id, const TensorSpec& spec, Tensor starts = nullptr) {
    made_.used.push_back(id);
    return graph().memory(id, spec, starts);
  }
  Tensor workspace(std::int64_t id, const TensorSpec& spec, Tensor starts, std::int64_t floats_of_token) {
    made_.workspace.push_back({id, floats_of_token});
    return graph().memory(id, spec, starts);
  }
  Tensor number(std::int64_t id) {
    made_.numbers.push_back(id);
    return graph().number(id);
  }
  Tensor between(const TensorSpec& spec, Tensor starts = nullptr) { return graph().between(spec, starts); }

  // mode(x, b) over the scores.
  Tensor apply(cudnnPointwiseMode_t mode, Tensor x, Tensor b = nullptr) {
    const Tensor y = between(scores_spec());
    graph().add(Graph::Pointwise{.mode = mode, .x = x, .y = y, .b = b});
    return y;
  }

  Tensor scaled_scores(Tensor q, Tensor k) {
    const Tensor scores = between(scores_spec());
    graph().add(Graph::Matmul{.a = q, .b = k, .c = scores, .m = lengths_, .n = lengths_});
    scale_ = number(kScale);
    return apply(CUDNN_POINTWISE_MUL, scores, scale_);
  }

  Tensor index(Tensor scores, std::int64_t axis, cudnnDataType_t precision) {
    const Tensor y = between(scores_spec(CUDNN_DATA_INT32));
    graph().add(Graph::Pointwise{
        .mode = CUDNN_POINTWISE_GEN_INDEX, .x = scores, .y = y, .precision = precision, .axis = axis});
    return y;
  }
  Tensor compare(cudnnPointwiseMode_t mode, Tensor x, Tensor b) {
    const Tensor y = between(scores_spec(CUDNN_DATA_BOOLEAN));
    graph().add(Graph::Pointwise{.mode = mode, .x = x, .y = y, .b = b, .precision = CUDNN_DATA_BOOLEAN});
    return y;
  }
  Tensor where(Tensor holds, Tensor scores, std::int64_t otherwise) {
    const Tensor hidden = number(otherwise), y = between(scores_spec());
    graph().add(Graph::Pointwise{
        .mode = CUDNN_POINTWISE_BINARY_SELECT, .x = scores, .y = y, .b = hidden, .t = holds});
    return y;
  }

  // Axes 2 and 3 of the scores count a row's queries and keys.
  Tensor masked(Tensor scores) {
    if (shape_.packed) {
      const Tensor query = index(scores, 2, CUDNN_DATA_INT32), key = index(scores, 3, CUDNN_DATA_INT32);
      const Tensor query_inside = compare(CUDNN_POINTWISE_CMP_LT, query, lengths_),
                   key_inside = compare(CUDNN_POINTWISE_CMP_LT, key, lengths_);
      scores = where(compare(CUDNN_POINTWISE_LOGICAL_AND, query_inside, key_inside), scores, kHidden);
    }
    const Tensor query = index(scores, 2, CUDNN_DATA_FLOAT), key = index(scores, 3, CUDNN_DATA_FLOAT);
    return where(compare(CUDNN_POINTWISE_CMP_GE, query, key), scores, kHiddenLater);
  }

  // D, which the engine keeps in workspace: sum over a head of do o.
  Tensor weighted_gradient(Tensor d_o, Tensor o) {
    TensorSpec spec = contiguous(s_, d_);
    spec.strides[2] = heads_ * d_;
    const Tensor product = between(spec), sum = between(per_token());
    graph().add(Graph::Pointwise{.mode = CUDNN_POINTWISE_MUL, .x = d_o, .y = product, .b = o});
    graph().reduce(CUDNN_REDUCE_TENSOR_ADD, product, sum);
    const Tensor kept = workspace(kSumD, stats_spec(), stats_starts_, heads_);
    graph().add(Graph::Pointwise{.mode = CUDNN_POINTWISE_MUL, .x = sum, .y = kept, .b = number(kOne)});
    return kept;
  }

  Tensor transposed_scores(Tensor scores) {
    const Tensor y = between({{b_, heads_, s_, s_}, {heads_ * s_ * s_, s_ * s_, 1, s_}, CUDNN_DATA_BFLOAT16});
    graph().reshape(scores, y);
    return y;
  }

  // y = weights x, summed over the query heads of each key head.
  void sum_over_members(Tensor weights, Tensor x, std::int64_t id, Tensor y) {
    const bool alone = heads_ == kv_heads_;
    Tensor each = y;
    if (!alone) {
      // Packed, cuDNN wants the starts of y here, and room for floats.
      each = shape_.packed ? workspace(id, tokens(heads_), kv_starts_, heads_ * d_)
                           : between(contiguous(s_, d_, CUDNN_DATA_BFLOAT16));
    }
    graph().add(Graph::Matmul{.a = weights, .b = x, .c = each, .m = lengths_, .k = lengths_});
    if (!alone) graph().reduce(CUDNN_REDUCE_TENSOR_ADD, each, y);
  }

  AttentionGraph made_;
  const AttentionShape& shape_;
  std::int64_t b_, heads_, kv_heads_, s_, d_;
  Tensor query_starts_ = nullptr, kv_starts_ = nullptr, stats_starts_ = nullptr, lengths_ = nullptr;
  Tensor scale_ = nullptr;
};

}  // namespace

AttentionGraph attention_graph(const Functions& functions, const AttentionShape& shape) {
  Builder builder(functions, shape);
  return shape.backward ? builder.backward() : builder.forward();
}

}  // namespace mulligan::cuda::cudnn
