// The error of attention's result: rows (a query of one head) of a call, compared with exact ones.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/core/tensor_type.h"
#include "framework/report/attention_record.h"

namespace mulligan::doctor {

// One call of attention as a backend computed it; docs/kernels.md.
struct AttentionCallValues {
  std::int64_t heads = 0, kv_heads = 0, width = 0;
  double softmax_scale = 1;
  std::vector<double> q, k, v, o;  // [T, H, h], [T, K, h] twice, [T, H, h]
  std::vector<double> boundaries;  // of segments
  std::vector<double> gradient;    // of o, [T, H, h]; empty: not known
  DType dtype = MLG_BF16;          // in which o is stored
  double tolerance = 1e-3;         // logits at least the maximum less this count as the maximum
  std::int64_t least_keys = 0;     // rows with fewer keys before them in their segment are left out
};

// Measures at most `most_rows` rows, spread evenly, in double precision. The error of an element is that of the stored result. Its
// unit is the unit in the last place of the dtype at sum_j p_j |v_j|. This sum is the result's own size if the values have one
// sign. `slot` is the caller's.
struct AttentionRowsSeen {
  AttentionLayerRecord record;
  std::int64_t rows = 0;
};
AttentionRowsSeen look_at_rows(const AttentionCallValues& call, std::int64_t most_rows);

// The largest singular value of a matrix [rows, columns], by power iteration on its square. It takes at most 100 rounds, until one
// changes the value by less than 1e-5 of itself. 0 for a matrix of zeros; NaN if an element is NaN.
double spectral_norm(const float* matrix, std::int64_t rows, std::int64_t columns);

}  // namespace mulligan::doctor
