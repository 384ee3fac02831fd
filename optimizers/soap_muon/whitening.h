// The momentum of SOAP (Vyas et al. 2024, arXiv:2409.11321) seen in the bases of the gradients' second moments, and
// how far it is trusted.
#pragma once

#include <mulligan/cpu_kernel.hpp>

#include "optimizers/common/momentum.h"

namespace mulligan::optimizers {

// The scalars of this optimiser: MatrixScalar, then these.
enum SoapScalar : unsigned {
  soap_first = matrix_scalar_count,  // 1 in the first update, which has no bases yet; else 0
  soap_trust_floor,                  // bounds of the trust in the step
  soap_trust_cap,
  soap_scalar_count
};

// v <- beta2 v + (1 - beta2) p^2;  white = p / sqrt(max(v, 1e-16)). All f32, of one shape.
struct SoapWhiten {
  static constexpr const char* name = "soap_muon_whiten";
  static constexpr const char* signature = "in p, inout v, out white; beta2";
  enum Argument : unsigned { p, v, white };
  enum Attribute : unsigned { beta2 };

  static void check(const sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// result = x * max(raw_norm, 1e-8) / max(x_norm, 1e-8); in the first update raw. Tensors of one shape, norms [1]; all
// f32.
struct SoapKeepNorm {
  static constexpr const char* name = "soap_muon_keep_norm";
  static constexpr const char* signature = "in raw, in raw_norm, in x, in x_norm, in scalars, out result";
  enum Argument : unsigned { raw, raw_norm, x, x_norm, scalars, result };

  static void check(const sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// With cos(a,b) = <a,b> / max(|a||b|, 1e-8) and clip to [0,1]:
//   g = clip(clip((cos(white,raw) - agreement) / (1 - agreement)) clip(cos(white,gradient) / max(cos(raw,gradient), 1e-8)))
//   t = min(max(g, floor), cap), floor and cap from the scalars;  blended = raw + t (white - raw);  gate = {g, t}
// Matrices [r,c] f32; gate [2] f32. Sums run in f64, over rows and then over the rows' sums.
struct SoapTrust {
  static constexpr const char* name = "soap_muon_trust";
  static constexpr const char* signature =
      "in raw, in white, in gradient, in scalars, out blended, out gate; agreement";
  enum Argument : unsigned { raw, white, gradient, scalars, blended, gate };
  enum Attribute : unsigned { agreement };
  static constexpr int sums = 6;  // of a row: rr, ww, gg, wr, wg, rg

  static void check(const sdk::CallChecks& call);
  static std::size_t workspace_bytes(const sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// The same for the cuda backend (whitening.cu).
extern const mlg_kernel soap_whiten_cuda;
extern const mlg_kernel soap_keep_norm_cuda;
extern const mlg_kernel soap_trust_cuda;

}  // namespace mulligan::optimizers
