// The graphs by which cuDNN knows attention (attention.h): its engines recognise the pattern of operations
// and compute it as one kernel.
//
// b rows, H query heads over K key heads, s tokens at most, d elements; g = H / K.
//   forward:   S = scale q k^T, masked;  m = max S;  stats = m + log sum exp(S - m);  o = (exp(S - m) / sum)
//   v backward:  D = sum(do o);  P = exp(scale q k^T - stats), masked;  dS = scale P (do v^T - D);
//              dv = P^T do,  dk = dS^T q  (both summed over the g heads of a key head),  dq = dS k
// Masked: a token sees itself and those before it; packed: of its own row, whose length the device knows.
#pragma once

#include <cstdint>
#include <vector>

#include "plugins/backends/cuda/attention.h"
#include "plugins/backends/cuda/gpu/cudnn/graph.h"

namespace mulligan::cuda::cudnn {

// By these an execution names tensors and numbers.
enum AttentionTensor : std::int64_t {
  kQ = 1,
  kK,
  kV,
  kO,
  kStats,
  kGradO,
  kGradQ,
  kGradK,
  kGradV,
  kQueryStarts,
  kKvStarts,
  kStatsStarts,
  kLengths,
  // Workspace of the backward pass.
  kSumD,
  kSumQ,
  kEachK,
  kEachV,
  // The numbers that the graph takes.
  kScale,
  kOne,
  kHidden,       // minus infinity, for what lies beyond a row's end
  kHiddenLater,  // the same for what comes later
};

struct AttentionGraph {
  Graph graph;
  struct Piece {
    std::int64_t id, floats_of_token;
  };
  std::vector<Piece> workspace;    // besides that of the plan
  std::vector<std::int64_t> used;  // tensors in memory, without those of the workspace
  std::vector<std::int64_t> numbers;
};

// The shape's number of tokens is not part of it, its other members are. Throws std::runtime_error where cuDNN
// refuses a part of it.
AttentionGraph attention_graph(const Functions& functions, const AttentionShape& shape);

}  // namespace mulligan::cuda::cudnn
