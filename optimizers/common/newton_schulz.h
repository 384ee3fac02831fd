// Orthogonalisation by an odd quintic polynomial in the matrix, as a list of matmuls.
#pragma once

#include <mulligan/recorder.hpp>

#include <array>
#include <span>

namespace mulligan::optimizers {

// X <- a X + (b A + c A^2) X with A = X X^T.
struct Quintic {
  double a, b, c;
};

// Polar Express (Amsel et al. 2025, arXiv:2505.16932), one polynomial per iteration; further iterations
// repeat the last. Leaves singular values of about 0.86 to 1.14.
inline constexpr std::array<Quintic, 5> polar_express{{
    {8.156554524902461, -22.48329292557795, 15.878769915207462},
    {4.042929935166739, -2.808917465908714, 0.5000178451051316},
    {3.8916678022926607, -2.772484153217685, 0.5060648178503393},
    {3.285753657755655, -2.3681294933425376, 0.46449024233003106},
    {2.3465413258596377, -1.7097828382687081, 0.42323551169305323},
}};
// Newton-Schulz with one polynomial throughout (Jordan et al. 2024). Singular values of about 0.68 to 1.13.
inline constexpr std::array<Quintic, 1> plain_newton_schulz{{{3.4445, -4.775, 2.0315}}};

// c = alpha op(a) op(b) + beta c; record_symmetric where the matmul and c are symmetric.
void record_matmul(sdk::Recorder& recorder, sdk::Value a, bool transpose_a, sdk::Value b, bool transpose_b,
                   sdk::Value c, double alpha, double beta);
void record_symmetric(sdk::Recorder& recorder, sdk::Value a, bool transpose_a, sdk::Value b, bool transpose_b,
                      sdk::Value c, double alpha, double beta);
// next <- a next + factor x, or, of a tall x, a next + x factor.
void record_last_matmul(sdk::Recorder& recorder, sdk::Value x, sdk::Value factor, bool tall, sdk::Value next,
                        double a);

// What a sequence of iterations computes with; equal but for rounding.
enum class NewtonSchulzForm {
  direct,  // every iteration from its own Gram matrix, like the published code
  // f32 matrices with one side at least twice the other: three iterations from one Gram matrix, in matmuls
  // of the shorter side alone. What rounding does to small singular values grows with the iterations that
  // share it; with three the error against the exact result is at most five times that of direct (1e-5 of the
  // norm on random matrices). bf16 iterates as direct does: two iterations from one matrix are 0.17 off where
  // the reference's bf16 results allow 0.15.
  gram
};

// Records `iterations` of the iteration on x ([r,c] or [B,r,c], f32 or bf16, Frobenius norm <= 1 per matrix)
// and returns the value that holds the result. Works on the smaller Gram matrix: X X^T, or X^T X when r > c.
sdk::Value record_newton_schulz(sdk::Recorder& recorder, sdk::Value x, std::span<const Quintic> polynomials,
                                int iterations, NewtonSchulzForm form);

}  // namespace mulligan::optimizers
