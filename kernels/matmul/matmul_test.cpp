// matmul against its formula, and matmul_add: the same with a term in other memory than the result.
#include "tests/kernels/matmul_formula.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::matmul_test {
namespace {

const MatmulProblem kProblems[] = {
    {.m = 5, .n = 7, .k = 3},
    {.m = 1, .n = 1, .k = 1, .beta = 1.0},
    {.m = 65, .n = 33, .k = 129, .alpha = 0.5, .beta = 1.0},
    {.m = 8, .n = 10, .k = 6, .batch = 3, .alpha = -1.5, .beta = 0.25},
    {.m = 300, .n = 530, .k = 17, .beta = 1.0},  // several tiles, shorter last ones
    {.m = 12, .n = 600, .k = 9, .batch = 2, .alpha = 1.125, .beta = 1.0},
    {.m = 17, .n = 9, .k = 2100, .alpha = 0.3, .beta = -2.0},  // inner dimension in pieces
    {.m = 12, .n = 8, .k = 3001, .batch = 2}};

// `term`: the argument that beta scales.
Operator matmul_operator(const char* kernel, const char* term) {
  Operator op{.forward = kernel, .backward = ""};
  for_each_layout([&](bool transpose_a, bool transpose_b, std::optional<mlg_dtype> c) {
    for (const MatmulProblem& p : kProblems)
      op.cases.push_back(matmul_case(p, transpose_a, transpose_b, c, term));
  });
  return op.computes([term](auto& call) { matmul_formula(call, term); });
}

const RegisterOperator registered{matmul_operator("matmul", "c"), matmul_operator("matmul_add", "term")};

const RegisterRows registered_rows{{"matmul", "a:Tk b:nk c:Tn", "transpose_b=1 alpha=1"},
                                   {"matmul", "a:Tk b:nk c:Tn/f", "transpose_b=1 alpha=0.5 beta=1"},
                                   {"matmul", "a:Tn b:nk c:Tk", "alpha=1"},
                                   {"matmul", "a:Tk b:dk c:Td", "transpose_b=1 alpha=1 beta=0.5", 1},
                                   {"matmul", "a:Ty b:dy c:Td", "transpose_b=1 alpha=1", 3},
                                   {"matmul", "a:Tn b:Tk c:nk/f", "transpose_a=1 alpha=1 beta=1"},
                                   {"matmul", "a:Tmk b:Tkd c:Tmd", "alpha=1", 1},
                                   {"matmul_add", "a:Tk b:nk term:Tn c:Tn", "transpose_b=1 alpha=1 beta=1"},
                                   {"symmetric_matmul", "a:nk b:nk c:nn", "transpose_b=1 alpha=1"}};

}  // namespace
}  // namespace mulligan::kernel_test::matmul_test
