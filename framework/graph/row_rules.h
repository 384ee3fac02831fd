// Facts about core kernels by name: whether they keep the rows of tokens apart, and how listings name them. Rows must stay
// apart in recordings of adapters for programs that score.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

namespace mulligan {

// How a core kernel treats rows. A row belongs to a token.
enum class RowRule {
  elementwise,  // every element of the result depends on the same element of the arguments
  row_wise,     // every row of the result depends on the same row: the first dimension counts rows
  matmul,       // matmul: a row of c depends on that row of a, if b holds no tokens and a is not transposed
  causal,       // a row depends on rows of its segment up to itself; the segments must be the host's
  mixing,       // rows meet: sums over tokens, gradients of parameters, lookups
};

struct KernelRows {
  std::string_view kernel;
  RowRule rule;
  // One letter per argument of an elementwise, row_wise or matmul kernel, in the order of its signature. i: read; p: read,
  // without tokens (a parameter); o: written; u: read and written. a: written, and read if `beta` or an attribute
  // accumulate_... is not 0.
  std::string_view arguments;
  std::string_view label = {};  // of its result, in the doctor's list of taps; empty: the kernel's name
  std::string_view cost = {};   // the line of a profile that counts it; empty: the last one
  bool fused = false;           // only a graph with fused kernels calls it
};

// Declares the rules of kernels before main() begins; an op does so in the file of its calls. A backward kernel that adds up
// gradients of parameters counts as mixing.
struct KernelRules {
  KernelRules(std::initializer_list<KernelRows> rows);
};

// Every core kernel of docs/kernels.md. A test compares it with the signatures of the cpu backend.
std::span<const KernelRows> kernel_rows();
// Null: a plugin's kernel, about which nothing is known.
const KernelRows* rows_of_kernel(std::string_view kernel);
inline bool is_fused_core_kernel(std::string_view kernel) {
  const KernelRows* known = rows_of_kernel(kernel);
  return known && known->fused;
}

}  // namespace mulligan
