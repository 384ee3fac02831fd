// The kernels that soap_muon brings alone, against their formulas written naively in double; eigenvectors by what
// makes them such.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::soap_muon_test {
namespace {

const std::vector<Shape> kShapes = {{1, 1}, {3, 5}, {40, 33}, {9, 130}};

// lr, momentum, decay factor, first, floor, cap
Operand scalars(double first, double floor = 0, double cap = 1) {
  return f32("scalars", {6}, values({0.02, 0.95, 1, first, floor, cap}));
}

Operator whiten() {
  Operator op{.forward = "soap_muon_whiten", .dtypes = {MLG_F32}};
  for (const Shape& shape : kShapes) {
    const Operand v = f32("v", shape, squared_normal());
    op.cases.push_back({.inputs = {f32("p", shape), v},
                        .outputs = {v, f32("white", shape)},
                        .attributes = {{"beta2", 0.75}}});
  }
  return op.computes([](Formula<double>& call) {
    for (std::int64_t i = 0; i < call.in("p").size(); ++i) {
      const double p = call.in("p")[i], v = 0.75 * call.in("v")[i] + 0.25 * p * p;
      call.out("v")[i] = v;
      call.out("white")[i] = p / std::sqrt(std::max(v, 1e-16));
    }
  });
}

Operator keep_norm() {
  Operator op{.forward = "soap_muon_keep_norm", .free_extents = {"scalars"}, .dtypes = {MLG_F32}};
  for (const Shape& shape : kShapes) {
    for (const double first : {0.0, 1.0}) {
      op.cases.push_back({.inputs = {f32("raw", shape), f32("raw_norm", {1}, values({2.5})), f32("x", shape),
                                     f32("x_norm", {1}, values({0.5})), scalars(first)},
                          .outputs = {f32("result", shape)}});
    }
  }
  return op.computes([](Formula<double>& call) {
    const bool first = call.in("scalars")[3] != 0;
    for (std::int64_t i = 0; i < call.in("x").size(); ++i)
      call.out("result")[i] = first ? call.in("raw")[i] : 5 * call.in("x")[i];
  });
}

// Momenta that agree in part: a common mean.
Operator trust() {
  Operator op{.forward = "soap_muon_trust", .free_extents = {"scalars"}, .dtypes = {MLG_F32}};
  for (const Shape& shape : kShapes) {
    for (const auto& [floor, cap] : {std::pair{0.0, 1.0}, {0.875, 1.0}, {0.0, 0.125}}) {
      op.cases.push_back({.inputs = {f32("raw", shape, normal(1.5)), f32("white", shape, normal(1.0)),
                                     f32("gradient", shape, normal(0.75)), scalars(0, floor, cap)},
                          .outputs = {f32("blended", shape), f32("gate", {2})},
                          .attributes = {{"agreement", 0.2}}});
    }
  }
  return op.computes([](Formula<double>& call) {
    const auto cosine = [&](const char* x, const char* y) {
      double xy = 0, xx = 0, yy = 0;
      for (std::int64_t i = 0; i < call.in(x).size(); ++i) {
        xy += call.in(x)[i] * call.in(y)[i];
        xx += std::pow(call.in(x)[i], 2);
        yy += std::pow(call.in(y)[i], 2);
      }
      return xy / std::max(std::sqrt(xx * yy), 1e-8);
    };
    const auto clip = [](double value) { return std::min(std::max(value, 0.0), 1.0); };
    const double agrees = clip((cosine("white", "raw") - 0.2) / 0.8);
    const double gate =
        clip(agrees * clip(cosine("white", "gradient") / std::max(cosine("raw", "gradient"), 1e-8)));
    const double t = std::min(std::max(gate, call.in("scalars")[4]), call.in("scalars")[5]);
    call.out("gate")[0] = gate;
    call.out("gate")[1] = t;
    for (std::int64_t i = 0; i < call.in("raw").size(); ++i) {
      call.out("blended")[i] = call.in("raw")[i] + t * (call.in("white")[i] - call.in("raw")[i]);
    }
  });
}

// Two equal rows among them: the first comes first.
Operator sort() {
  Operator op{.forward = "soap_muon_sort", .dtypes = {MLG_F32}};
  for (const std::int64_t n : {1, 6, 67}) {
    const Generator doubled = [n](Random& random, std::int64_t i) {
      return i / n < 2 ? 0.5 : normal()(random, i);
    };
    op.cases.push_back({.inputs = {f32("basis", {n, n}, doubled), f32("projected", {n, n}, doubled)},
                        .outputs = {f32("sorted", {n, n}), {"order", {n}, MLG_I32}}});
  }
  return op.computes([](Formula<double>& call) {
    const std::int64_t n = call.in("basis").dim(0);
    std::vector<double> value(n);
    std::vector<std::int64_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) value[i] += call.in("basis")(i, j) * call.in("projected")(i, j);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int64_t a, std::int64_t b) { return value[a] > value[b]; });
    for (std::int64_t i = 0; i < n; ++i) {
      call.out("order")[i] = static_cast<double>(order[i]);
      for (std::int64_t j = 0; j < n; ++j) call.out("sorted")(i, j) = call.in("projected")(order[i], j);
    }
  });
}

Operator permute() {
  Operator op{.forward = "soap_muon_permute", .dtypes = {MLG_F32}};
  for (const Shape& shape : kShapes) {
    const auto order = [](const char* name, std::int64_t n) {  // from the last to the first
      return Operand{
          name, {n}, MLG_I32, [n](Random&, std::int64_t i) { return static_cast<double>(n - 1 - i); }};
    };
    op.cases.push_back(
        {.inputs = {f32("x", shape), order("row_order", shape[0]), order("column_order", shape[1])},
         .outputs = {f32("permuted", shape)}});
  }
  return op.computes([](Formula<double>& call) {
    const std::int64_t rows = call.in("x").dim(0), columns = call.in("x").dim(1);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        call.out("permuted")(i, j) = call.in("x")(call.index("row_order", i), call.index("column_order", j));
      }
    }
  });
}

Operator first_rows() {
  Operator op{.forward = "soap_muon_first_rows", .free_extents = {"scalars"}, .dtypes = {MLG_F32}};
  for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {3, 8}, {40, 70}}) {
    for (const double first : {0.0, 1.0}) {
      op.cases.push_back({.inputs = {f32("image", {m, n}), scalars(first), f32("rows", {n, n})},
                          .outputs = {f32("rows", {n, n})}});
    }
  }
  return op.computes([](Formula<double>& call) {
    const bool first = call.in("scalars")[3] != 0;
    for (std::int64_t i = 0; i < call.in("rows").size(); ++i) {
      const double image = i < call.in("image").size() ? call.in("image")[i] : 0.0;
      call.out("rows")[i] = first ? image : call.in("rows")[i];
    }
  });
}

// The second row is zero: its reflection is the identity.
Operator reflect() {
  Operator op{.forward = "soap_muon_reflect", .dtypes = {MLG_F32}};
  struct Panel {
    std::int64_t rows, columns, first;
  };
  for (const Panel panel : {Panel{1, 1, 0}, {4, 9, 2}, {32, 70, 32}}) {
    const Shape shape = {panel.rows, panel.columns};
    op.cases.push_back({.inputs = {f32("rows", shape,
                                       [columns = panel.columns](Random& random, std::int64_t i) {
                                         return i / columns == 1 ? 0.0 : normal()(random, i);
                                       })},
                        .outputs = {f32("reflectors", shape), f32("triangle", {panel.rows, panel.rows})},
                        .attributes = {{"first", static_cast<double>(panel.first)}}});
  }
  return op.computes([](Formula<double>& call) {
    const std::int64_t b = call.in("rows").dim(0), n = call.in("rows").dim(1);
    const auto first = static_cast<std::int64_t>(call.attribute("first"));
    std::vector<double> x = call.in("rows").data;
    for (std::int64_t k = 0; k < b; ++k) {
      const std::int64_t j = first + k;
      double square = 0, length = 0;
      for (std::int64_t c = j; c < n; ++c) square += std::pow(x[k * n + c], 2);
      auto& v = call.out("reflectors");
      for (std::int64_t c = j; c < n; ++c) {
        v(k, c) = x[k * n + c] + (c == j ? std::copysign(std::sqrt(square), x[k * n + c]) : 0.0);
        length += std::pow(v(k, c), 2);
      }
      for (std::int64_t c = j; c < n && length > 0; ++c) v(k, c) /= std::sqrt(length);
      for (std::int64_t i = k + 1; i < b; ++i) {
        double dot = 0;
        for (std::int64_t c = j; c < n; ++c) dot += x[i * n + c] * v(k, c);
        for (std::int64_t c = j; c < n; ++c) x[i * n + c] -= 2 * dot * v(k, c);
      }
      auto& t = call.out("triangle");
      t(k, k) = 2;
      for (std::int64_t i = 0; i < k; ++i) {
        double sum = 0;
        for (std::int64_t m = i; m < k; ++m) {
          for (std::int64_t c = j; c < n; ++c) sum += t(i, m) * v(m, c) * v(k, c);
        }
        t(i, k) = -2 * sum;
      }
    }
  });
}

Operator identity() {
  Operator op{.forward = "soap_muon_identity", .dtypes = {MLG_F32}};
  for (const std::int64_t n : {1, 7, 40}) op.cases.push_back({.inputs = {}, .outputs = {f32("x", {n, n})}});
  return op.computes([](Formula<double>& call) {
    for (std::int64_t i = 0; i < call.out("x").dim(0); ++i) call.out("x")(i, i) = 1;
  });
}
const RegisterOperator registered{whiten(),  keep_norm(),  trust(),   sort(),
                                  permute(), first_rows(), reflect(), identity()};

const CoversKernel covered_eigenvectors("soap_muon_eigenvectors");

KernelCall eigenvectors(std::int64_t n, const std::vector<double>& gram, double first) {
  return kernel_call("soap_muon_eigenvectors", "gram scalars rows",
                     {{MLG_F32, {n, n}, gram},
                      {MLG_F32, {6}, {0.02, 0.95, 1, first, 0, 1}},
                      {MLG_F32, {n, n}, std::vector<double>(static_cast<std::size_t>(n * n), 7.0)}});
}

// G G^T of random G [n, rank]: n - rank eigenvalues are zero.
std::vector<double> random_gram(std::int64_t n, std::int64_t rank) {
  Random random(5);
  std::vector<double> g(static_cast<std::size_t>(n * rank)), gram(static_cast<std::size_t>(n * n));
  for (std::size_t i = 0; i < g.size(); ++i) g[i] = normal()(random, static_cast<std::int64_t>(i));
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t k = 0; k < rank; ++k) gram[i * n + j] += g[i * rank + k] * g[j * rank + k];
      gram[i * n + j] = round_to(MLG_F32, gram[i * n + j]);
    }
  }
  return gram;
}

TEST(SoapEigenvectors, AreOrthonormalAndSorted) {
  for (const std::int64_t n : {1, 2, 5, 12, 33}) {
    const std::vector<double> gram = random_gram(n, n);
    KernelResult result = backend_with_threads(1).run(eigenvectors(n, gram, 1));
    const std::vector<double>& rows = result.written.at("rows").values;
    double last = std::numeric_limits<double>::infinity();
    for (std::int64_t i = 0; i < n; ++i) {
      std::vector<double> image(static_cast<std::size_t>(n));
      double value = 0;
      for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t k = 0; k < n; ++k) image[j] += gram[j * n + k] * rows[i * n + k];
        value += image[j] * rows[i * n + j];
      }
      for (std::int64_t j = 0; j < n; ++j) {
        EXPECT_NEAR(image[j], value * rows[i * n + j], 1e-5 * static_cast<double>(n))
            << n << ", vector " << i;
      }
      EXPECT_LE(value, last * (1 + 1e-6)) << n << ", vector " << i;
      last = value;
      for (std::int64_t other = 0; other <= i; ++other) {
        double dot = 0;
        for (std::int64_t j = 0; j < n; ++j) dot += rows[i * n + j] * rows[other * n + j];
        EXPECT_NEAR(dot, other == i ? 1.0 : 0.0, 2e-5) << n << ", vectors " << i << " and " << other;
      }
    }
    for (const int threads : {2, 3}) {
      EXPECT_EQ(result.bytes.at("rows"),
                backend_with_threads(threads).run(eigenvectors(n, gram, 1)).bytes.at("rows"));
    }
  }
}

// Later updates leave everything as it is; a gram of zeros has no vectors.
TEST(SoapEigenvectors, OnlyInTheFirstUpdate) {
  BackendFixture& backend = backend_with_threads(1);
  const KernelResult later = backend.run(eigenvectors(6, random_gram(6, 6), 0));
  for (const double value : later.written.at("rows").values) EXPECT_EQ(value, 7.0);
  const KernelResult nothing = backend.run(eigenvectors(6, std::vector<double>(36), 1));
  for (const double value : nothing.written.at("rows").values) EXPECT_EQ(value, 0.0);
}

const RegisterRows registered_rows{
    {"soap_muon_whiten", "p:Fd/f v:Fd/f white:Fd/f", "beta2=0.9"},
    {"soap_muon_keep_norm", "raw:Fd/f raw_norm:1/f x:Fd/f x_norm:1/f scalars:6/f result:Fd/f"},
    {"soap_muon_trust", "raw:Fd/f white:Fd/f gradient:Fd/f scalars:6/f blended:Fd/f gate:2/f",
     "agreement=0.2"},
    {"soap_muon_sort", "basis:dd/f projected:dd/f sorted:dd/f order:d/i"},
    {"soap_muon_permute", "x:dd/f row_order:d/i column_order:d/i permuted:dd/f"},
    {"soap_muon_eigenvectors", "gram:dd/f scalars:6/f rows:dd/f"},
    {"soap_muon_first_rows", "image:md/f scalars:6/f rows:dd/f"},
    {"soap_muon_reflect", "rows:md/f reflectors:md/f triangle:mm/f", "first=3"},
    {"soap_muon_identity", "x:dd/f"}};

}  // namespace
}  // namespace mulligan::kernel_test::soap_muon_test
