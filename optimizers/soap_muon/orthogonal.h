// The orthogonal factor of a matrix by Householder's reflections, in panels, so that most of the work is matmuls.
//
// Everything lies in rows: X [n,n] stands for the matrix X^T, whose columns are the rows of X. A panel of b rows gives
// reflections H_1 ... H_b = I - V T V^T (Schreiber & Van Loan 1989), and the rows below become x H_1 ... H_b. Rows
// of zeros get the reflection I, so that a singular X still has a whole orthonormal basis.
#pragma once

#include <mulligan/cpu_kernel.hpp>
#include <mulligan/recorder.hpp>

namespace mulligan::optimizers {

// The reflections of a panel: `rows` [b,n] are rows first to first + b - 1 of X, their elements before column `first`
// done with. For k = 0 ... b-1, with j = first + k: v_k = x_k + sign(x_kj) |x_k[j:]| e_j over columns j and
// beyond, divided by its norm, and H_k = I - 2 v_k v_k^T applied to the rows below. reflectors [b,n]: the v_k, zeros
// before column j; triangle [b,b]: T, upper triangular. f32; norms and dot product of two rows in f64.
struct SoapReflect {
  static constexpr const char* name = "soap_muon_reflect";
  static constexpr const char* signature = "in rows, out reflectors, out triangle; first";
  enum Argument : unsigned { rows, reflectors, triangle };
  enum Attribute : unsigned { first };
  static constexpr std::int64_t most_rows = 32;  // of a panel

  static void check(const sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// x [n,n] f32 = I.
struct SoapIdentity {
  static constexpr const char* name = "soap_muon_identity";
  static constexpr const char* signature = "out x";
  enum Argument : unsigned { x };

  static void check(const sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// Records: result [n,n] f32 gets orthonormal rows q_i, with x_i in the span of q_1 ... q_i (signs are arbitrary). `x`
// [n,n] f32 is overwritten.
void record_orthogonal_rows(sdk::Recorder& recorder, sdk::Value x, sdk::Value result);

// The same for the cuda backend (orthogonal.cu).
extern const mlg_kernel soap_reflect_cuda;
extern const mlg_kernel soap_identity_cuda;

}  // namespace mulligan::optimizers
