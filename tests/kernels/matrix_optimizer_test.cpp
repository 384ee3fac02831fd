// The kernels of the matrix optimisers muon, muon_h, normuon and soap_muon after the momentum, against their formulas
// written naively in double. Those of soap_muon alone: soap_muon_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::matrix_optimizer_test {
namespace {

const std::vector<mlg_dtype> kMasters = {MLG_F32, MLG_BF16};
const std::vector<Shape> kMatrices = {{1, 1}, {3, 5}, {7, 3}, {2, 7, 4}, {2, 4, 130}, {65, 40}};

struct Sizes {
  std::int64_t matrices, rows, columns;
  explicit Sizes(const Shape& shape)
      : matrices(shape.size() == 3 ? shape[0] : 1), rows(shape[shape.size() - 2]), columns(shape.back()) {}
};

Operator gram_norm(const std::string& plugin) {
  Operator op{.forward = plugin + "_gram_norm", .dtypes = {MLG_F32}};
  for (const Shape& shape : {Shape{1, 1}, Shape{33, 33}, Shape{3, 6, 6}}) {
    op.cases.push_back({.inputs = {f32("gram", shape)}, .outputs = {f32("norm", {Sizes(shape).matrices})}});
  }
  return op.computes([](Formula<double>& call) {
    const Sizes size(call.in("gram").shape);
    for (std::int64_t m = 0; m < size.matrices; ++m) {
      double sum = 0;
      for (std::int64_t i = 0; i < size.rows * size.columns; ++i)
        sum += std::pow(call.in("gram")[m * size.rows * size.columns + i], 2);
      call.out("norm")[m] = std::pow(sum, 0.25);
    }
  });
}

Operator divide_by_norm(const std::string& plugin) {
  Operator op{.forward = plugin + "_divide_by_norm", .dtypes = kMasters};
  for (const Shape& shape : kMatrices) {
    op.cases.push_back({.inputs = {{"x", shape}, f32("norm", {Sizes(shape).matrices}, values({0.25, 3.0}))},
                        .outputs = {{"y", shape}},
                        .attributes = {{"floor", 0.5}}});
  }
  return op.computes([](Formula<double>& call) {
    const Sizes size(call.in("x").shape);
    for (std::int64_t i = 0; i < call.in("x").size(); ++i) {
      call.out("y")[i] = call.in("x")[i] / std::max(call.in("norm")[i / (size.rows * size.columns)], 0.5);
    }
  });
}

double norm_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}
double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// The step of radius_step.h on one matrix.
std::vector<double> radius_step(const Formula<double>& call, std::vector<double> o, std::vector<double> w,
                                std::int64_t columns, double rate) {
  const double eps = call.attribute("eps"), ratio = call.attribute("floor_ratio");
  const double k = dot(o, w) / std::max(dot(w, w), 1e-12);
  for (std::size_t i = 0; i < o.size() && k < 0; ++i) o[i] -= (1 - call.attribute("outward")) * k * w[i];
  const auto raise = [&](std::size_t begin, std::size_t end) {
    const std::vector<double> part(o.begin() + begin, o.begin() + end),
        weights(w.begin() + begin, w.begin() + end);
    const double factor =
        std::max(1.0, ratio * std::max(norm_of(weights), eps) / std::max(norm_of(part), eps));
    for (std::size_t i = begin; i < end; ++i) o[i] *= factor;
  };
  const int floor = static_cast<int>(call.attribute("floor"));
  if (floor == 1) raise(0, o.size());
  for (std::size_t row = 0; row < o.size() && floor == 2; row += columns) raise(row, row + columns);
  const double length = norm_of(o);
  for (double& value : o) value *= floor == 3 ? norm_of(w) / std::max(length, eps) : 1;
  const double before = std::max(norm_of(w), eps);
  double target = std::max(before - rate * dot(o, w) / before, eps);
  if (call.attribute("pin") == 2) target = norm_of(w);
  std::vector<double> moved = w;
  for (std::size_t i = 0; i < o.size(); ++i) moved[i] -= rate * o[i];
  const double shrink = call.attribute("pin") == 0 ? 1 : target / std::max(norm_of(moved), eps);
  for (std::size_t i = 0; i < o.size(); ++i) {
    moved[i] *= shrink * (o[i] * w[i] > 0 ? 1 - rate * call.attribute("cautious_decay") * 0.75 : 1);
  }
  return moved;
}

// `sign`: of the directions next to the masters, so that steps lead inward and outward.
Operator matrix_step(const std::string& plugin) {
  Operator op{.forward = plugin + "_step", .free_extents = {"scalars"}, .dtypes = kMasters};
  for (const Shape& shape : kMatrices) {
    for (int kind = 0; kind < 4; ++kind) {
      const Operand master{"master", shape};
      op.cases.push_back({.inputs = {{"direction", shape, std::nullopt, normal(kind % 2 == 0 ? -0.3 : 0.2)},
                                     {"master", shape, std::nullopt, normal(0.4)},
                                     f32("scalars", {3}, values({0.1, 0.95, 0.75}))},
                          .outputs = {master},
                          .attributes = {{"lr_multiplier", 0.5},
                                         {"scale", 1.5},
                                         {"outward", 0.25},
                                         {"floor", kind},
                                         {"floor_ratio", 1.25},
                                         {"pin", kind % 3},
                                         {"cautious_decay", 0.5},
                                         {"eps", 1e-8}}});
    }
  }
  return op.computes([](Formula<double>& call) {
    const Sizes size(call.in("master").shape);
    const std::int64_t elements = size.rows * size.columns;
    for (std::int64_t first = 0; first < call.in("master").size(); first += elements) {
      const auto part = [&](const char* name, double factor) {
        std::vector<double> result;
        for (std::int64_t i = 0; i < elements; ++i) result.push_back(factor * call.in(name)[first + i]);
        return result;
      };
      const std::vector<double> moved =
          radius_step(call, part("direction", call.attribute("scale")), part("master", 1), size.columns,
                      call.in("scalars")[0] * call.attribute("lr_multiplier"));
      for (std::int64_t i = 0; i < elements; ++i) call.out("master")[first + i] = moved[i];
    }
  });
}

Shape lines_of(Shape shape) {
  const bool tall = shape[shape.size() - 2] >= shape.back();
  shape[tall ? shape.size() - 1 : shape.size() - 2] = 1;
  return shape;
}

// Which line an element is of, among those of all matrices.
std::int64_t line_of(const Sizes& size, std::int64_t element) {
  if (size.rows >= size.columns) return element / size.columns;
  return element / (size.rows * size.columns) * size.columns + element % size.columns;
}

Operator normuon_factors() {
  Operator op{.forward = "normuon_factors", .dtypes = kMasters};
  for (const Shape& shape : kMatrices) {
    const Operand moment = f32("second_moment", lines_of(shape), squared_normal());
    op.cases.push_back({.inputs = {{"direction", shape}, moment},
                        .outputs = {moment, f32("factors", lines_of(shape))},
                        .attributes = {{"beta2", 0.75}, {"scale", 1.5}}});
  }
  return op.computes([](Formula<double>& call) {
    const Sizes size(call.in("direction").shape);
    const std::int64_t elements = size.rows * size.columns, length = std::min(size.rows, size.columns);
    const std::int64_t lines = elements / length;
    for (std::int64_t m = 0; m < size.matrices; ++m) {
      double before = 0, after = 0;
      for (std::int64_t line = m * lines; line < (m + 1) * lines; ++line) {
        double squares = 0;
        for (std::int64_t i = m * elements; i < (m + 1) * elements; ++i) {
          if (line_of(size, i) == line) squares += std::pow(1.5 * call.in("direction")[i], 2);
        }
        const double v = 0.75 * call.in("second_moment")[line] + 0.25 * squares / static_cast<double>(length);
        call.out("second_moment")[line] = v;
        before += squares;
        after += squares / std::max(v, 1e-10);
      }
      for (std::int64_t line = m * lines; line < (m + 1) * lines; ++line) {
        call.out("factors")[line] = 1 / std::sqrt(std::max(call.out("second_moment")[line], 1e-10)) *
                                    std::sqrt(before) / std::max(std::sqrt(after), 1e-10);
      }
    }
  });
}

Operator normuon_apply() {
  Operator op{.forward = "normuon_apply", .free_extents = {"scalars"}, .dtypes = kMasters};
  for (const Shape& shape : kMatrices) {
    const Operand master{"master", shape};
    op.cases.push_back({.inputs = {{"direction", shape},
                                   f32("factors", lines_of(shape)),
                                   master,
                                   f32("scalars", {3}, values({0.02, 0.95, 0.75}))},
                        .outputs = {master},
                        .attributes = {{"lr_multiplier", 0.5}, {"weight_decay", 0.25}, {"scale", 1.5}}});
  }
  return op.computes([](Formula<double>& call) {
    const Sizes size(call.in("master").shape);
    for (std::int64_t i = 0; i < call.in("master").size(); ++i) {
      call.out("master")[i] = call.in("master")[i] * (1 - 0.01 * 0.75 * 0.25) -
                              0.01 * 1.5 * call.in("factors")[line_of(size, i)] * call.in("direction")[i];
    }
  });
}
const RegisterOperator registered{
    gram_norm("muon"),     gram_norm("soap_muon"),   divide_by_norm("muon"), divide_by_norm("soap_muon"),
    matrix_step("muon_h"), matrix_step("soap_muon"), normuon_factors(),      normuon_apply()};

const RegisterRows registered_rows{
    {"muon_gram_norm", "gram:mdd/f norm:m/f"},
    {"muon_divide_by_norm", "x:mFd norm:m/f y:mFd", "floor=1e-7", 5, false},
    {"muon_h_momentum", "gradient:Fd/f momentum_buffer:Fd/f scalars:3/f direction:Fd", "nesterov=1 mean=1", 5,
     false},
    {"muon_h_step", "direction:Fd master:Fd/f scalars:3/f",
     "lr_multiplier=0.1 scale=1.5 outward=0.5 cautious_decay=0.2 eps=1e-8 floor=3 pin=2", 5, false},
    {"normuon_momentum", "gradient:Fd/f momentum_buffer:Fd/f scalars:3/f direction:Fd", "nesterov=1 mean=1",
     5, false},
    {"normuon_factors", "direction:Fd second_moment:F1/f factors:F1/f", "beta2=0.9 scale=1.5", 5, false},
    {"normuon_apply", "direction:Fd factors:F1/f master:Fd/f scalars:3/f",
     "lr_multiplier=1 weight_decay=0.1 scale=0.2", 5, false},
    {"soap_muon_momentum", "gradient:Fd/f momentum_buffer:Fd/f scalars:3/f direction:Fd", "nesterov=1 mean=1",
     5, false},
    {"soap_muon_gram_norm", "gram:dd/f norm:1/f"},
    {"soap_muon_divide_by_norm", "x:Fd norm:1/f y:Fd", "floor=1e-7", 5, false},
    {"soap_muon_step", "direction:Fd master:Fd/f scalars:6/f",
     "lr_multiplier=0.1 scale=1.5 outward=0.5 cautious_decay=0.2 eps=1e-8 floor=2 floor_ratio=0.4 pin=1", 5,
     false}};

}  // namespace
}  // namespace mulligan::kernel_test::matrix_optimizer_test
