// Bases of the second moments of gradients. A basis of R^n is kept as the rows of an [n,n] matrix.
#pragma once

#include <mulligan/cpu_kernel.hpp>
#include <mulligan/recorder.hpp>

#include "optimizers/soap_muon/whitening.h"

namespace mulligan::optimizers {

// order: the rows of basis in descending order of <basis_i, projected_i>; equal ones stay in order. sorted: the rows of
// projected in this order. basis, projected, sorted [n,n] f32; order [n] i32. Sums in f64.
struct SoapSort {
  static constexpr const char* name = "soap_muon_sort";
  static constexpr const char* signature = "in basis, in projected, out sorted, out order";
  enum Argument : unsigned { basis, projected, sorted, order };

  static void check(const sdk::CallChecks& call);
  static std::size_t workspace_bytes(const sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// permuted[i,j] = x[row_order[i], column_order[j]]. x and permuted [r,c] f32; orders [r] and [c] i32, each a
// permutation.
struct SoapPermute {
  static constexpr const char* name = "soap_muon_permute";
  static constexpr const char* signature = "in x, in row_order, in column_order, out permuted";
  enum Argument : unsigned { x, row_order, column_order, permuted };

  static void check(const sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// In the first update: rows = the eigenvectors of gram ([n,n] f32, symmetric), those of the largest eigenvalue first;
// zeros where an eigenvalue is zero. One-sided Jacobi (Hestenes 1958) in f64: pairs of rows of gram are turned until
// all rows are orthogonal. In later updates nothing happens.
struct SoapEigenvectors {
  static constexpr const char* name = "soap_muon_eigenvectors";
  static constexpr const char* signature = "in gram, in scalars, inout rows";
  enum Argument : unsigned { gram, scalars, rows };
  static constexpr int sweeps = 30;           // at most; some ten are taken
  static constexpr double tolerance = 1e-13;  // cosine of rows that count as orthogonal

  static void check(const sdk::CallChecks& call);
  static std::size_t workspace_bytes(const sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// In the first update: rows [n,n] = image [m,n] (m <= n) above zeros. In later updates nothing happens. All f32.
struct SoapFirstRows {
  static constexpr const char* name = "soap_muon_first_rows";
  static constexpr const char* signature = "in image, in scalars, inout rows";
  enum Argument : unsigned { image, scalars, rows };

  static void check(const sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// One matrix's moments and bases: gradient [r,c]; the others states, [r,c], [r,r] or [c,c] f32.
struct SoapBases {
  sdk::Value gradient, second_moment, row_gram, column_gram, row_basis, column_basis;
};
// Records the end of an update: grams <- beta2 gram + (1 - beta2) G G^T and G^T G; bases sorted by their
// eigenvalues, second_moment with them; then one step of orthogonal iteration, basis <- orthogonal factor of
// gram basis. In the first update eigenvectors: those of the smaller gram, and on the other side their images
// under the gradient, filled up with any basis of the rest.
void record_bases(sdk::Recorder& recorder, const SoapBases& matrix, double beta2, sdk::Value scalars);

// How the pairs of round `round` of a sweep over n rows are made (the circle method): every two rows meet once in n - 1
// rounds (n even; with n odd count one more, which takes no part).
struct JacobiPair {
  std::int64_t a, b;
  static JacobiPair of(std::int64_t n, std::int64_t round, std::int64_t index) {
    const std::int64_t seats = n - 1;
    if (index == 0) return {round, seats};
    return {(round + index) % seats, (round + seats - index) % seats};
  }
};

// The same for the cuda backend (basis.cu).
extern const mlg_kernel soap_sort_cuda;
extern const mlg_kernel soap_permute_cuda;
extern const mlg_kernel soap_eigenvectors_cuda;
extern const mlg_kernel soap_first_rows_cuda;

}  // namespace mulligan::optimizers
