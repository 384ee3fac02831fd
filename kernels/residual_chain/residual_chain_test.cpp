// residual_chain against its formula (docs/kernels.md), and against the kernels that it replaces.
#include "tests/kernels/norm_row.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::residual_chain_test {
namespace {

Case chain_case(std::int64_t tokens, std::int64_t width, double scale) {
  const Shape rows{tokens, width};
  return {{{"x", rows},
           {"a", rows},
           {"s", {width}, MLG_F32},
           {"skip", rows},
           {"weight", {width}, MLG_F32},
           {"gate", {width}, MLG_F32},
           {"x0", rows},
           {"mix", {2, width}, MLG_F32}},
          {{"sum", rows}, {"merged", rows}, {"y", rows}, {"n", rows}},
          {{"scale", scale}, {"eps", kEps}}};
}

// The widest rows are taken in several slices by the cuda backend, one or several elements at a time.
Operator residual_chain() {
  Operator op{.forward = "residual_chain_fwd", .backward = "residual_chain_bwd"};
  op.cases = {chain_case(3, 5, 1.0), chain_case(7, 37, 0.5), chain_case(35, 24, 0.7),
              chain_case(1, 4104, 0.3)};
  return op.computes([](auto& call) {
    using S = typename std::remove_reference_t<decltype(call)>::Scalar;
    auto &x = call.in("x"), &sum = call.out("sum"), &merged = call.out("merged"), &y = call.out("y");
    for (std::int64_t t = 0; t < x.dim(0); ++t) {
      for (std::int64_t j = 0; j < x.dim(1); ++j) {
        sum(t, j) = x(t, j) + (call.has("s") ? call.in("s")[j] : S(1.0)) * call.in("a")(t, j);
        S skip = call.has("skip") ? call.in("skip")(t, j) : sum(t, j);
        skip = call.has("weight") ? call.in("weight")[j] * skip : S(0.0);
        merged(t, j) = with_skip(call, sum(t, j), skip, j);
        y(t, j) = call.in("mix")(0, j) * merged(t, j) + call.in("mix")(1, j) * call.in("x0")(t, j);
      }
      norm_row(y, call.out("n"), t, call.attribute("scale"), call.attribute("eps"));
    }
  });
}

const RegisterOperator registered{residual_chain()};

const RegisterRows registered_rows{
    {"residual_chain_fwd",
     "x:Td a:Td s:d/f skip:Td weight:d/f gate:d/f x0:Td mix:2d/f sum:Td merged:Td y:Td n:Td",
     norm_attributes},
    {"residual_chain_bwd",
     "x:Td a:Td s:d/f skip:Td weight:d/f gate:d/f x0:Td mix:2d/f dsum:Td dmerged:Td dy:Td dn:Td "
     "dx:Td da:Td ds:d/f dskip:Td dweight:d/f dgate:d/f dx0:Td dmix:2d/f",
     norm_attributes}};

}  // namespace
}  // namespace mulligan::kernel_test::residual_chain_test
