// attention_fwd: o = softmax(scale q k^T) v, causal inside each segment; lse = log of the softmax's denominator.
// attention_bidirectional_fwd: the same over all keys of the segment.
//
// The online softmax of FlashAttention (Dao et al., 2022) on tiles of 64 keys x 64 queries, kept transposed: scores are S[key,
// query], the output is O[channel, query]. So query positions lie along vector lanes, and the running maximum and sum are plain
// vectors. Keys and values enter the matmuls as they lie in memory. A task is one block of queries with all query heads of one
// kv head. It reads keys in order, so results do not depend on the number of threads. Scores are in units of log2(e).
#include "kernels/attention/cpu_fwd_worker.h"

namespace mulligan::cpu::attention_fwd {
namespace {

template <typename Shape, Sight sight>
struct Forward : Shape {
  static std::size_t workspace_bytes(const sdk::CallChecks& call) {
    return forward_workspace<PlainSoftmax>(call);
  }
  static void run(const Launch& launch) { run_forward(launch, PlainSoftmax{}, sight); }
};

const Register registered[] = {
    sdk::cpu_kernel<Forward<shapes::AttentionForward, Sight::causal>>(),
    sdk::cpu_kernel<Forward<shapes::AttentionBidirectionalForward, Sight::bidirectional>>()};

}  // namespace
}  // namespace mulligan::cpu::attention_fwd
