// What matmuls that this thread prepares from now on must hold: set by CpuBackend::enter(), as the number of
// threads is, since a kernel's preparation knows its call and no backend.
#pragma once

namespace mulligan::cpu {

namespace matmul_mode_detail {
inline thread_local bool batch_invariant = false;
}

// A row of c = op(a) op(b), a not transposed, does not depend on how many rows a has (padded_rows.h).
inline bool batch_invariant_matmuls() {
  return matmul_mode_detail::batch_invariant;
}
inline void set_batch_invariant_matmuls(bool on) {
  matmul_mode_detail::batch_invariant = on;
}

}  // namespace mulligan::cpu
