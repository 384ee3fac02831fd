// The Schatten-4 norm |X|_4 = sqrt(|X X^T|_F) of matrices, and matrices divided by it. Kernels' names: named_kernel.h.
#pragma once

#include <mulligan/cpu_kernel.hpp>
#include <mulligan/recorder.hpp>

#include <string>

namespace mulligan::optimizers {

// norm[i] = sqrt(|gram[i]|_F), one per matrix. gram [n,n] or [B,n,n] f32; norm [1] or [B] f32. The sum runs in f64,
// over rows and then over the rows' sums.
struct GramNorm {
  static constexpr const char* name = "gram_norm";
  static constexpr const char* signature = "in gram, out norm";
  enum Argument : unsigned { gram, norm };

  static void check(const sdk::CallChecks& call);
  static std::size_t workspace_bytes(const sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// y = x / max(norm, floor), matrix by matrix. x and y [r,c] or [B,r,c], each f32 or bf16; norm [1] or [B] f32.
struct DivideByNorm {
  static constexpr const char* name = "divide_by_norm";
  static constexpr const char* signature = "in x, in norm, out y; floor";
  enum Argument : unsigned { x, norm, y };
  enum Attribute : unsigned { floor };

  static void check(const sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// Of x ([r,c] or [B,r,c], f32 or bf16): its Schatten-4 norms, [1] or [B] f32, by the kernels of plugin
// `optimizer`.
sdk::Value record_schatten4(sdk::Recorder& recorder, const std::string& optimizer, sdk::Value x);

// The same for the cuda backend (schatten.cu).
extern const mlg_kernel gram_norm_cuda;
extern const mlg_kernel divide_by_norm_cuda;

}  // namespace mulligan::optimizers
