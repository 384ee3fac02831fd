// The kernels that the plugins adamw, sgd, muon and schedule_free_adamw bring, and the momentum of all matrix
// optimisers, against their formulas written naively in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::optimizer_step_test {
namespace {

const std::vector<mlg_dtype> kMasterDtypes = {MLG_F32, MLG_BF16};  // in which weights may be kept
const std::vector<Shape> kShapes = {{1}, {5, 7}, {33}, {4, 100, 129}};

// State in f32, and in the dtype of the weights.
Operator adamw_update() {
  Operator op{.forward = "adamw_update", .free_extents = {"scalars"}, .dtypes = kMasterDtypes};
  for (const Shape& shape : kShapes) {
    for (const bool wide_state : {true, false}) {
      const std::optional<mlg_dtype> state = wide_state ? std::optional(MLG_F32) : std::nullopt;
      const Operand master{"master", shape}, mean{"exp_avg", shape, state},
          square{"exp_avg_sq", shape, state, squared_normal()};
      op.cases.push_back(
          {.inputs = {f32("gradient", shape), master, mean, square,
                      f32("scalars", {6}, values({0.02, 0.271, 2.5, 0.9, 0.1, 0.75}))},
           .outputs = {master, mean, square},
           .attributes = {{"lr_multiplier", 0.5}, {"weight_decay", 0.25}, {"beta2", 0.95}, {"eps", 1e-8}}});
    }
  }
  return op.computes([](Formula<double>& call) {
    const double lr = call.in("scalars")[0] * call.attribute("lr_multiplier");
    const double beta1 = call.in("scalars")[3], beta2 = call.attribute("beta2");
    const double decay = call.attribute("weight_decay") * call.in("scalars")[5];
    for (std::int64_t i = 0; i < call.in("master").size(); ++i) {
      const double g = call.in("gradient")[i];
      const bool keeps_mean = call.has("exp_avg");
      const double m = keeps_mean ? beta1 * call.in("exp_avg")[i] + (1 - beta1) * g : g;
      const double v = beta2 * call.in("exp_avg_sq")[i] + (1 - beta2) * g * g;
      if (keeps_mean) call.out("exp_avg")[i] = m;
      call.out("exp_avg_sq")[i] = v;
      call.out("master")[i] =
          call.in("master")[i] * (1 - lr * decay) -
          lr / call.in("scalars")[1] * m / (std::sqrt(v) * call.in("scalars")[2] + call.attribute("eps"));
    }
  });
}

Operator sgd_update() {
  Operator op{.forward = "sgd_update", .free_extents = {"scalars"}, .dtypes = kMasterDtypes};
  for (const Shape& shape : kShapes) {
    for (const double decoupled : {0.0, 1.0}) {
      const Operand master{"master", shape}, buffer = f32("momentum_buffer", shape);
      op.cases.push_back(
          {.inputs = {f32("gradient", shape), master, buffer, f32("scalars", {3}, values({0.1, 0.9, 0.75}))},
           .outputs = {master, buffer},
           .attributes = {{"lr_multiplier", 2.0},
                          {"weight_decay", 0.25},
                          {"decoupled", decoupled},
                          {"nesterov", decoupled == 0.0 ? 1.0 : 0.0}}});
    }
  }
  return op.computes([](Formula<double>& call) {
    const double lr = call.in("scalars")[0] * call.attribute("lr_multiplier");
    const double momentum = call.in("scalars")[1];
    const double decay = call.attribute("weight_decay") * call.in("scalars")[2];
    const bool decoupled = call.attribute("decoupled") != 0;
    for (std::int64_t i = 0; i < call.in("master").size(); ++i) {
      double p = call.in("master")[i], direction = call.in("gradient")[i];
      if (decoupled) {
        p -= lr * decay * p;
      } else {
        direction += decay * p;
      }
      if (call.has("momentum_buffer")) {
        const double buffer = momentum * call.in("momentum_buffer")[i] + direction;
        call.out("momentum_buffer")[i] = buffer;
        direction = call.attribute("nesterov") != 0 ? direction + momentum * buffer : buffer;
      }
      call.out("master")[i] = p - lr * direction;
    }
  });
}

// Row 0 of the first matrix is zero in gradient and buffer: a norm of zero must not divide.
Generator zero_first_row(std::int64_t columns) {
  return [columns](Random& random, std::int64_t i) { return i < columns ? 0.0 : normal()(random, i); };
}

Operator matrix_momentum(const std::string& plugin) {
  Operator op{.forward = plugin + "_momentum", .free_extents = {"scalars"}, .dtypes = kMasterDtypes};
  for (const Shape& shape :
       std::vector<Shape>{{1, 1}, {3, 5}, {2, 7, 3}, {3, 65, 130}, {1, 40, 700}, {2, 9, 328}}) {
    for (const double flag : {0.0, 1.0}) {
      const Generator generate = zero_first_row(shape.back());
      const Operand buffer{"momentum_buffer", shape, std::nullopt, generate}, direction{"direction", shape};
      op.cases.push_back({.inputs = {f32("gradient", shape, generate), buffer,
                                     f32("scalars", {3}, values({0.02, 0.95, 0.75})),
                                     f32("gradient_scale", {1}, values({0.375}))},
                          .outputs = {buffer, direction},
                          .attributes = {{"nesterov", flag},
                                         {"row_normalize", 1.0 - flag},
                                         {"mean", shape.size() == 3 ? 1.0 : 0.0},
                                         {"normalize", shape.back() == 5 ? 0.0 : 1.0}}});
    }
  }
  return op.computes([](Formula<double>& call) {
    const Shape& shape = call.in("gradient").shape;
    const std::int64_t columns = shape.back(), rows = shape[shape.size() - 2];
    const double momentum = call.in("scalars")[1];
    const double share = (call.attribute("mean") != 0 ? 1 - momentum : 1.0) *
                         (call.has("gradient_scale") ? call.in("gradient_scale")[0] : 1.0);
    for (std::int64_t first = 0; first < call.in("gradient").size(); first += rows * columns) {
      double total = 0;
      for (std::int64_t row = first; row < first + rows * columns; row += columns) {
        double sum = 0;
        for (std::int64_t i = row; i < row + columns; ++i) {
          const double g = share * call.in("gradient")[i],
                       buffer = momentum * call.in("momentum_buffer")[i] + g;
          const double u = call.attribute("nesterov") != 0 ? g + momentum * buffer : buffer;
          call.out("momentum_buffer")[i] = buffer;
          call.out("direction")[i] = u;
          sum += u * u;
        }
        if (call.attribute("row_normalize") != 0) {
          const double norm = std::max(std::sqrt(sum), 1e-7);
          for (std::int64_t i = row; i < row + columns; ++i) call.out("direction")[i] /= norm;
          sum /= norm * norm;
        }
        total += sum;
      }
      for (std::int64_t i = first; i < first + rows * columns && call.attribute("normalize") != 0; ++i) {
        call.out("direction")[i] /= std::sqrt(total) + 1e-7;
      }
    }
  });
}

Operator muon_update() {
  Operator op{.forward = "muon_update", .free_extents = {"scalars"}, .dtypes = kMasterDtypes};
  for (const Shape& shape : std::vector<Shape>{{1, 1}, {3, 5}, {2, 65, 130}, {2, 12, 40}}) {
    for (const std::optional<mlg_dtype> dtype : {std::optional<mlg_dtype>(), std::optional(MLG_F32)}) {
      const Operand master{"master", shape, dtype};
      op.cases.push_back(
          {.inputs = {{"direction", shape}, master, f32("scalars", {3}, values({0.02, 0.95, 0.75}))},
           .outputs = {master},
           .attributes = {{"lr_multiplier", 0.5}, {"weight_decay", 0.25}, {"scale", 1.5}}});
    }
  }
  return op.computes([](Formula<double>& call) {
    const double lr = call.in("scalars")[0] * call.attribute("lr_multiplier");
    const double decay = call.attribute("weight_decay") * call.in("scalars")[2];
    for (std::int64_t i = 0; i < call.in("master").size(); ++i) {
      call.out("master")[i] =
          call.in("master")[i] * (1 - lr * decay) - lr * call.attribute("scale") * call.in("direction")[i];
    }
  });
}

// weight_sum of zero with a rate of zero: nothing to divide.
Operator schedule_free_share() {
  Operator op{.forward = "schedule_free_share", .free_extents = {"scalars"}, .dtypes = {MLG_F32}};
  for (const double rate : {0.02, 0.0}) {
    for (const double sum : {0.0, 0.003}) {
      const Operand weight_sum = f32("weight_sum", {1}, values({sum}));
      op.cases.push_back({.inputs = {f32("scalars", {2}, values({rate, 0.75})), weight_sum},
                          .outputs = {weight_sum, f32("share", {1})}});
    }
  }
  return op.computes([](Formula<double>& call) {
    const double square = call.in("scalars")[0] * call.in("scalars")[0],
                 sum = call.in("weight_sum")[0] + square;
    call.out("weight_sum")[0] = sum;
    call.out("share")[0] = sum > 0 ? square / sum : 1.0;
  });
}

Operator schedule_free_update() {
  Operator op{.forward = "schedule_free_update", .free_extents = {"scalars"}, .dtypes = kMasterDtypes};
  for (const Shape& shape : kShapes) {
    const Operand master{"master", shape}, offset = f32("offset", shape),
                                           square = f32("exp_avg_sq", shape, squared_normal());
    op.cases.push_back(
        {.inputs = {f32("gradient", shape), master, offset, square, f32("share", {1}, values({0.25})),
                    f32("scalars", {2}, values({0.02, 0.75}))},
         .outputs = {master, offset, square},
         .attributes = {{"lr_multiplier", 0.5},
                        {"weight_decay", 0.25},
                        {"beta1", 0.9},
                        {"beta2", 0.95},
                        {"eps", 1e-8}}});
  }
  return op.computes([](Formula<double>& call) {
    const double rate = call.in("scalars")[0] * call.attribute("lr_multiplier");
    const double decay = call.attribute("weight_decay") * call.in("scalars")[1];
    for (std::int64_t i = 0; i < call.in("master").size(); ++i) {
      const double g = call.in("gradient")[i], y = call.in("master")[i], d = call.in("offset")[i];
      const double v =
          call.attribute("beta2") * call.in("exp_avg_sq")[i] + (1 - call.attribute("beta2")) * g * g;
      const double change = rate * (g / (std::sqrt(v) + call.attribute("eps")) + decay * y);
      const double after = (1 - call.in("share")[0]) * (d - call.attribute("beta1") * change);
      call.out("exp_avg_sq")[i] = v;
      call.out("offset")[i] = after;
      call.out("master")[i] = y + (d - after) - change;
    }
  });
}

Operator schedule_free_average() {
  Operator op{.forward = "schedule_free_average", .dtypes = kMasterDtypes};
  for (const Shape& shape : kShapes) {
    op.cases.push_back({.inputs = {{"master", shape}, f32("offset", shape)},
                        .outputs = {f32("evaluation", shape)},
                        .attributes = {{"ratio", 0.125}}});
  }
  return op.computes([](Formula<double>& call) {
    for (std::int64_t i = 0; i < call.in("master").size(); ++i) {
      call.out("evaluation")[i] = call.in("master")[i] - call.attribute("ratio") * call.in("offset")[i];
    }
  });
}

// `op`, which also makes an average and, where `copies`, a copy of the master (fused_update.hpp). If the kernel has
// gradient_scale, it multiplies the gradient by it. A state that it can do without has the gradient in its place.
Operator with_extras(Operator op, bool scales, bool copies) {
  std::vector<Case> cases;
  // A copy in the dtype of the weights, and in each narrow one.
  const std::vector<std::optional<mlg_dtype>> dtypes = {std::nullopt, MLG_BF16, MLG_F16};
  for (const Case& plain : op.cases) {
    const auto master = std::ranges::find(plain.inputs, "master", &Operand::name);
    for (std::size_t i = 0; i < (copies ? dtypes.size() : 1); ++i) {
      Case& c = cases.emplace_back(plain);
      const Operand average = f32("average", master->shape);
      if (scales) c.inputs.push_back(f32("gradient_scale", {1}, values({0.375})));
      c.inputs.push_back(average);
      c.outputs.push_back(average);
      if (copies) c.outputs.push_back({"copy", master->shape, dtypes[i]});
      c.attributes["average_decay"] = 0.75;
    }
  }
  op.cases = std::move(cases);
  if (copies) {
    op.suite = op.forward + "_with_copy";
    op.tolerance_f32 = 4e-3;  // of a copy in bf16
  } else {
    op.free_extents.push_back("copy");
  }
  return op.computes([plain = op.value](Formula<double>& call) {
    if (call.has("gradient_scale")) {
      for (double& g : call.in("gradient").data) g *= call.in("gradient_scale")[0];
    }
    plain(call);
    for (std::int64_t i = 0; i < call.in("master").size(); ++i) {
      const double p = call.out("master")[i];
      if (call.has("average")) {
        call.out("average")[i] = call.attribute("average_decay") * call.in("average")[i] +
                                 (1 - call.attribute("average_decay")) * p;
      }
      if (call.outputs.contains("copy")) call.out("copy")[i] = p;
    }
  });
}
const RegisterOperator registered{matrix_momentum("muon"),
                                  matrix_momentum("muon_h"),
                                  matrix_momentum("normuon"),
                                  matrix_momentum("soap_muon"),
                                  schedule_free_share(),
                                  schedule_free_average(),
                                  with_extras(adamw_update(), true, false),
                                  with_extras(adamw_update(), true, true),
                                  with_extras(sgd_update(), true, false),
                                  with_extras(sgd_update(), true, true),
                                  with_extras(muon_update(), false, false),
                                  with_extras(muon_update(), false, true),
                                  with_extras(schedule_free_update(), true, false),
                                  with_extras(schedule_free_update(), true, true)};

const std::string adamw = "gradient:Fd/f master:Fd/f exp_avg:Fd/f exp_avg_sq:Fd/f ",
                  update = "lr_multiplier=1 weight_decay=0.1 average_decay=0.9";
const RegisterRows registered_rows{
    {"adamw_update", adamw + "scalars:6/f gradient_scale:1/f average:Fd/f copy:Fd",
     update + " beta2=0.9 eps=1e-8"},
    {"adamw_stochastic_update",
     "gradient:Fd/f master:Fd/f exp_avg:Fd/b exp_avg_sq:Fd/b scalars:8/f gradient_scale:1/f average:Fd/f "
     "copy:Fd",
     update + " beta2=0.9 eps=1e-8 stream=3"},
    {"muon_momentum", "gradient:Fd/f momentum_buffer:Fd/f scalars:3/f direction:Fd gradient_scale:1/f",
     "nesterov=1 row_normalize=1", 5, false},
    {"muon_update", "direction:Fd master:Fd/f scalars:3/f average:Fd/f copy:Fd", update + " scale=0.2", 5,
     false},
    {"sgd_update",
     "gradient:Fd/f master:Fd/f momentum_buffer:Fd/f scalars:3/f gradient_scale:1/f average:Fd/f copy:Fd",
     update + " nesterov=1"},
    {"schedule_free_share", "scalars:2/f weight_sum:1/f share:1/f"},
    {"schedule_free_update",
     "gradient:Fd/f master:Fd/f offset:Fd/f exp_avg_sq:Fd/f share:1/f scalars:2/f gradient_scale:1/f "
     "average:Fd/f copy:Fd",
     update + " beta1=0.9 beta2=0.9 eps=1e-8"},
    {"schedule_free_average", "master:Fd/f offset:Fd/f evaluation:Fd/f", "ratio=0.3"}};

}  // namespace
}  // namespace mulligan::kernel_test::optimizer_step_test
