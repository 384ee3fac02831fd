// attention_bwd. With P = exp(scale q k^T - lse) (causal inside each segment; attention_bidirectional_bwd: all
// keys of the segment) and delta[t] = sum_channels o *
// do:
//   dv = P^T do     dP = do v^T     dS = scale P (dP - delta)     dq = dS k     dk = dS^T q
// P is computed again tile by tile (FlashAttention-2, Dao 2023); kv heads collect from all their query heads.
//
// Every element of dk and dv is summed over query blocks in order, every element of dq over key blocks in
// order, in f32. Two schedules give these same sums, so that the choice between them may depend on the number
// of threads:
//   one pass: a task is a segment and a kv head, and owns all three gradients (5 matmuls per tile);
//   two passes, if segments are too few or too uneven to share out: a task owns dk and dv of one block of
//   keys, then dq of one block of queries (7 matmuls).
#include <numeric>

#include "kernels/attention/cpu_bwd_worker.h"

namespace mulligan::cpu::attention_bwd {
namespace {

using Backward = shapes::AttentionBackward;

// One call, for one type of elements.
template <typename T, typename Math>
class Pass {
 public:
  using Worker = BackwardWorker<T, Math>;

  // With a null workspace only workspace_bytes() may be called.
  Pass(const Launch& launch, const AttentionShape& shape, std::byte* workspace)
      : launch_(launch), shape_(shape), inputs_{launch.data<const T>(Backward::q),
                                                launch.data<const T>(Backward::k),
                                                launch.data<const T>(Backward::v),
                                                launch.data<const T>(Backward::o),
                                                launch.data<const T>(Backward::d_o),
                                                launch.data<const float>(Backward::lse),
                                                launch.number(Backward::softmax_scale)} {
    // f32 gradients whose rows are whole vectors are summed in place.
    const bool in_place = std::is_same_v<T, float> && shape.width % kLanes == 0;
    ld_ = round_up(shape.width, kLanes);
    const std::int64_t sums = in_place ? 0 : shape.tokens * shape.kv_heads * ld_;
    ScratchLayout layout(workspace);
    first_block_ = layout.take<std::int64_t>(shape.segments + 1);
    order_ = layout.take<std::int32_t>(shape.segments);
    dk_sums_ = layout.take<float>(sums);
    dv_sums_ = layout.take<float>(sums);
    worker_bytes_ = Worker(shape, inputs_, nullptr).scratch_bytes();
    scratch_ = layout.take<std::byte>(static_cast<std::int64_t>(worker_bytes_) * thread_count());
    workspace_bytes_ = layout.used();
    in_place_ = in_place;
  }

  std::size_t workspace_bytes() const { return workspace_bytes_; }

  void run() {
    const SegmentBlocks blocks(shape_, launch_.data<const std::int32_t>(Backward::cu_seqlens), first_block_);
    std::iota(order_, order_ + shape_.segments, 0);
    std::sort(order_, order_ + shape_.segments, [&](std::int32_t a, std::int32_t b) {
      return blocks.length(a) != blocks.length(b) ? blocks.length(a) > blocks.length(b) : a < b;
    });
    if (shares_out(blocks)) {
      one_pass(blocks);
    } else {
      two_passes(blocks);
    }
  }

 private:
  // True when no task of the one-pass schedule is more than a thread's fair share.
  bool shares_out(const SegmentBlocks& blocks) const {
    double total = 0;
    for (std::int64_t s = 0; s < shape_.segments; ++s) {
      total += static_cast<double>(blocks.length(s)) * static_cast<double>(blocks.length(s));
    }
    const double longest = static_cast<double>(blocks.length(order_[0]));
    return longest * longest * thread_count() <= total * static_cast<double>(shape_.kv_heads);
  }

  Worker make_worker() const {
    return Worker(shape_, inputs_, scratch_ + worker_bytes_ * static_cast<std::size_t>(thread_index()));
  }

  void one_pass(const SegmentBlocks& blocks) {
    // Empty segments come last. They get no tasks: the loop deals tasks out in pieces of equal number, and
    // thousands of empty ones would put all the work into the first piece.
    const auto* first_empty = std::find_if(order_, order_ + shape_.segments,
                                           [&](std::int32_t segment) { return blocks.length(segment) == 0; });
    launch_.parallel_for(
        (first_empty - order_) * shape_.kv_heads, 1, [&](std::int64_t begin, std::int64_t end) {
          Worker worker = make_worker();
          for (std::int64_t task = begin; task < end; ++task) {
            const std::int64_t segment = order_[task / shape_.kv_heads], kv_head = task % shape_.kv_heads;
            const std::int64_t count = blocks.blocks_of(segment);
            for (std::int64_t j = 0; j < count; ++j) start_keys(blocks.block_of(segment, j), kv_head);
            for (std::int64_t i = 0; i < count; ++i) {
              const QueryBlock queries = blocks.block_of(segment, i);
              worker.load_queries(queries, kv_head);
              worker.clear_query_gradients();
              for (std::int64_t j = 0; j < (shape_.sight == Sight::causal ? i + 1 : count); ++j)
                multiply<true, true>(worker, blocks.block_of(segment, j), kv_head, queries);
              store_queries(worker, queries, kv_head);
            }
            for (std::int64_t j = 0; j < count; ++j) store_keys(blocks.block_of(segment, j), kv_head);
          }
        });
  }

  void two_passes(const SegmentBlocks& blocks) {
    launch_.parallel_for(blocks.count() * shape_.kv_heads, 1, [&](std::int64_t begin, std::int64_t end) {
      Worker worker = make_worker();
      for (std::int64_t task = begin; task < end; ++task) {
        const std::int64_t first = task / shape_.kv_heads, kv_head = task % shape_.kv_heads;
        const QueryBlock keys = blocks.block(first);
        start_keys(keys, kv_head);
        const std::int64_t before = (keys.begin - keys.segment_begin) / kTile;  // blocks of the segment
        for (std::int64_t i = shape_.sight == Sight::causal ? first : first - before; i < blocks.count();
             ++i) {
          const QueryBlock queries = blocks.block(i);
          if (queries.segment_begin != keys.segment_begin) break;
          worker.load_queries(queries, kv_head);
          multiply<true, false>(worker, keys, kv_head, queries);
        }
        store_keys(keys, kv_head);
      }
    });
    launch_.parallel_for(blocks.count() * shape_.kv_heads, 1, [&](std::int64_t begin, std::int64_t end) {
      Worker worker = make_worker();
      for (std::int64_t task = begin; task < end; ++task) {
        const QueryBlock queries = blocks.block(blocks.count() - 1 - task / shape_.kv_heads);
        const std::int64_t kv_head = task % shape_.kv_heads;
        worker.load_queries(queries, kv_head);
        worker.clear_query_gradients();
        QueryBlock keys = queries;
        for (keys.begin = queries.segment_begin; keys.begin < queries.keys_end(shape_.sight);
             keys.begin += kTile) {
          keys.count = std::min<std::int64_t>(kTile, keys.segment_end - keys.begin);
          multiply<false, true>(worker, keys, kv_head, queries);
        }
        store_queries(worker, queries, kv_head);
      }
    });
  }

  template <bool kKeys, bool kQueries>
  void multiply(Worker& worker, const QueryBlock& keys, std::int64_t kv_head, const QueryBlock& queries) {
    worker.load_keys(keys.begin, keys.count, kv_head);
    worker.template multiply<kKeys, kQueries>(queries.on_diagonal(shape_.sight, keys.begin),
                                              key_gradients(keys, kv_head));
  }

  KeyGradients key_gradients(const QueryBlock& keys, std::int64_t kv_head) const {
    if constexpr (std::is_same_v<T, float>) {
      const std::int64_t at = shape_.kv_at(keys.begin, kv_head);
      if (in_place_)
        return {launch_.data<float>(Backward::dk) + at, launch_.data<float>(Backward::dv) + at,
                shape_.kv_stride()};
    }
    // Head by head: rows that follow each other stay in the first-level cache,
    // rows of all heads apart do not.
    const std::int64_t at = (kv_head * shape_.tokens + keys.begin) * ld_;
    return {dk_sums_ + at, dv_sums_ + at, ld_};
  }

  // What the sums of a block of keys start from.
  void start_keys(const QueryBlock& keys, std::int64_t kv_head) {
    const KeyGradients to = key_gradients(keys, kv_head);
    for (std::int64_t r = 0; r < keys.count; ++r) {
      if (!in_place_ || launch_.attribute(Backward::accumulate_dk) == 0)
        std::fill_n(to.dk + r * to.stride, ld_, 0.0f);
      if (!in_place_ || launch_.attribute(Backward::accumulate_dv) == 0)
        std::fill_n(to.dv + r * to.stride, ld_, 0.0f);
    }
  }

  void store_keys(const QueryBlock& keys, std::int64_t kv_head) {
    if (in_place_) return;
    const KeyGradients from = key_gradients(keys, kv_head);
    const std::int64_t at = shape_.kv_at(keys.begin, kv_head);
    store_rows(from.dk, from.stride, keys.count, launch_.data<T>(Backward::dk) + at, shape_.kv_stride(),
               Backward::accumulate_dk);
    store_rows(from.dv, from.stride, keys.count, launch_.data<T>(Backward::dv) + at, shape_.kv_stride(),
               Backward::accumulate_dv);
  }

  void store_queries(Worker& worker, const QueryBlock& block, std::int64_t kv_head) {
    for (std::int64_t g = 0; g < shape_.group; ++g) {
      store_rows(worker.query_gradients(g), worker.ld(), block.count,
                 launch_.data<T>(Backward::dq) + shape_.q_at(block.begin, kv_head * shape_.group + g),
                 shape_.q_stride(), Backward::accumulate_dq);
    }
  }

  void store_rows(const float* from, std::int64_t from_stride, std::int64_t rows, T* to,
                  std::int64_t to_stride, Backward::Accumulate accumulate) const {
    const bool add = launch_.attribute(accumulate) != 0;
    for (std::int64_t r = 0; r < rows; ++r, from += from_stride, to += to_stride) {
      if (add) {
        for (std::int64_t j = 0; j < shape_.width; ++j) to[j] = T(to[j] + from[j]);
      } else {
        for (std::int64_t j = 0; j < shape_.width; ++j) to[j] = T(from[j]);
      }
    }
  }

  const Launch& launch_;
  const AttentionShape& shape_;
  typename Worker::Inputs inputs_;
  std::int64_t* first_block_;
  std::int32_t* order_;  // segments, longest first
  float *dk_sums_, *dv_sums_;
  std::byte* scratch_;
  std::int64_t ld_;
  bool in_place_;
  std::size_t worker_bytes_, workspace_bytes_;
};

template <typename Shape, Sight sight>
struct Kernel : Shape {
  static std::size_t workspace_bytes(const sdk::CallChecks& call) {
    const AttentionShape shape(call, sight);
    return dispatch_math(call.dtype(Shape::q), [&]<typename T, typename Math>() {
      return Pass<T, Math>(call, shape, nullptr).workspace_bytes();
    });
  }
  static void run(const Launch& launch) {
    const AttentionShape shape(launch, sight);
    dispatch_math(launch.dtype(Shape::q), [&]<typename T, typename Math>() {
      Pass<T, Math>(launch, shape, launch.workspace<std::byte>()).run();
    });
  }
};

const Register registered[] = {
    sdk::cpu_kernel<Kernel<shapes::AttentionBackward, Sight::causal>>(),
    sdk::cpu_kernel<Kernel<shapes::AttentionBidirectionalBackward, Sight::bidirectional>>()};

}  // namespace
}  // namespace mulligan::cpu::attention_bwd
