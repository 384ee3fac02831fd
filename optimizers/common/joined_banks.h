// The orthogonalisation of newton_schulz.h for several banks of matrices at once. The banks are consecutive in memory, and so are their
// Gram matrices. So one call does all copies, or all matmuls of Gram matrices of one size.
#pragma once

#include <mulligan/recorder.hpp>

#include <span>
#include <vector>

#include "optimizers/common/newton_schulz.h"

namespace mulligan::optimizers {

class JoinedBanks {
 public:
  // Whether these banks may be joined: more than one, and each may begin where another ends.
  static bool joins(std::span<const mlg_tensor> banks);

  // `banks`: shapes [r,c] or [B,r,c] in one dtype, f32 or bf16.
  JoinedBanks(sdk::Recorder& recorder, std::span<const mlg_tensor> banks);

  // What is to be orthogonalised: bank number `index`, to be written before record().
  sdk::Value input(std::size_t index) const { return banks_[index].x; }
  // Records the iteration, the same for all banks, on the inputs, which are overwritten.
  void record(std::span<const Quintic> polynomials, int iterations);
  // The result, after record().
  sdk::Value output(std::size_t index) const { return banks_[index].x; }

 private:
  struct Bank {
    bool tall = false;
    sdk::Value x = 0, next = 0, gram = 0, factor = 0;  // views
  };
  struct Squares {
    sdk::Value gram = 0, factor = 0;  // [B, n, n] of all banks with Gram matrices of one size
  };
  sdk::Recorder& recorder_;
  sdk::Value x_ = 0, next_ = 0, gram_ = 0, factor_ = 0;  // of all banks, flat
  std::vector<Bank> banks_;
  std::vector<Squares> squares_;
};

}  // namespace mulligan::optimizers
