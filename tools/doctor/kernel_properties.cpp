#include "tools/doctor/model_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "framework/check/poisoned_run.h"
#include "framework/model/rope.h"

namespace mulligan::doctor {
namespace {

constexpr const char* look_at_kernel = "compare this kernel of the backend with docs/kernels.md";

// Rotated heads of the same vector at every position: y[t, head, i].
class Rotated {
 public:
  Rotated(Backend& backend, const ModelConfig& model, DType compute, unsigned seed)
      : heads_(model.heads), width_(model.head_width) {
    const TensorType type(compute, {positions, heads_, width_}),
        table(MLG_F32, {positions, model.rope.dims / 2});
    Graph graph;
    graph.call("qk_norm_rope_fwd",
               {graph.external("x", type), graph.external("cos", table), graph.external("sin", table),
                Value{}, graph.external("y", type)},
               {{"rope_dims", static_cast<double>(model.rope.dims)},
                {"row_length", static_cast<double>(positions)},
                {"norm", 0},
                {"eps", 0}});
    PoisonedRun run(backend, graph, "doctor/rotation");
    const std::vector<float> one = sample(static_cast<std::size_t>(heads_ * width_), seed);
    std::vector<float> all;
    for (std::int64_t t = 0; t < positions; ++t) all.insert(all.end(), one.begin(), one.end());
    const RopeTables tables = rope_tables(model.rope, positions);
    run.set("x", all);
    run.set("cos", tables.cos);
    run.set("sin", tables.sin);
    run.run(poison_nan);
    x_ = run.floats("x");
    y_ = run.floats("y");
  }
  static constexpr std::int64_t positions = 9;
  double x(std::int64_t head, std::int64_t i) const {
    return x_[static_cast<std::size_t>(head * width_ + i)];
  }
  double y(std::int64_t t, std::int64_t head, std::int64_t i) const {
    return y_[static_cast<std::size_t>((t * heads_ + head) * width_ + i)];
  }
  double dot(const Rotated& other, std::int64_t t, std::int64_t other_t, std::int64_t head) const {
    double sum = 0;
    for (std::int64_t i = 0; i < width_; ++i) sum += y(t, head, i) * other.y(other_t, head, i);
    return sum;
  }

 private:
  std::int64_t heads_, width_;
  std::vector<float> x_, y_;
};

// What is wrong with it, or nothing.
std::string rotation_problem(Backend& backend, const ModelConfig& model, DType compute, double slack) {
  const Rotated q(backend, model, compute, 1), k(backend, model, compute, 2);
  const RopeTables tables = rope_tables(model.rope, Rotated::positions);
  const std::int64_t half = model.rope.dims / 2;
  for (std::int64_t head = 0; head < model.heads; ++head) {
    double turned = 0;
    for (std::int64_t i = 0; i < model.head_width; ++i) {
      if (!(std::abs(q.y(0, head, i) - q.x(head, i)) <= slack))
        return fmt::format("position 0 of head {} is changed", head);
      turned = std::max(turned, std::abs(q.y(1, head, i) - q.x(head, i)));
    }
    if (half > 0 && turned <= slack) return fmt::format("head {} is not rotated at position 1", head);
    for (std::int64_t j = 0; j < half; ++j) {
      const double cos = tables.cos[static_cast<std::size_t>(half + j)],
                   sin = tables.sin[static_cast<std::size_t>(half + j)];
      const double expected = q.x(head, j) * cos + q.x(head, j + half) * sin;
      if (!(std::abs(q.y(1, head, j) - expected) <= slack))
        return fmt::format("element {} of head {} is not turned with element {}: pairs are (j, j + dims/2)",
                           j, head, j + half);
    }
    const double size = std::sqrt(q.dot(q, 0, 0, head) * k.dot(k, 0, 0, head));
    for (std::int64_t t = 1; t < Rotated::positions; ++t) {
      if (!(std::abs(q.dot(q, t, t, head) - q.dot(q, 0, 0, head)) <= slack * q.dot(q, 0, 0, head)))
        return fmt::format("the length of head {} changes at position {}", head, t);
      if (!(std::abs(q.dot(k, t, t - 1, head) - q.dot(k, 1, 0, head)) <= slack * size))
        return fmt::format(
            "the product of query and key of head {} at positions {} and {} is not that at 1 and 0", head, t,
            t - 1);
    }
  }
  return {};
}

}  // namespace

Finding check_rotation(Backend& backend, const ModelConfig& model, DType compute) {
  // bf16 rounds both factors; a table in bf16 turns by other angles than it says.
  const double slack = compute == MLG_F32 && model.rope.table == RopeTable::fp32 ? 1e-4 : 3e-2;
  Finding f;
  f.id = "D14";
  f.title = "rotary embedding";
  f.threshold = fmt::format("fails beyond {:.0e}", slack);
  const std::string problem = rotation_problem(backend, model, compute, slack);
  f.measured = fmt::format("{} heads, {} of {} dimensions rotated, {} positions", model.heads,
                           model.rope.dims, model.head_width, Rotated::positions);
  if (problem.empty()) return f;
  f.verdict = CheckOutcome::fail;
  f.message = "q and k (post-rope), kernel qk_norm_rope_fwd: " + problem;
  f.hint = look_at_kernel;
  return f;
}

Finding check_softmax(Backend& backend, const ModelConfig& model, DType compute) {
  constexpr std::int64_t tokens = 130;
  const double slack = compute == MLG_F32 ? 2e-6 : 1e-2;
  const TensorType q(compute, {tokens, model.heads, model.head_width}),
      k(compute, {tokens, model.kv_heads, model.head_width});
  Graph graph;
  graph.call("attention_fwd",
             {graph.external("q", q), graph.external("k", k), graph.external("v", k),
              graph.external("cu_seqlens", TensorType(MLG_I32, {2})), graph.external("o", q),
              graph.external("lse", TensorType(MLG_F32, {tokens, model.heads}))},
             {{"softmax_scale", 1 / std::sqrt(static_cast<double>(model.head_width))}});
  PoisonedRun run(backend, graph, "doctor/softmax");
  run.set("q", sample(static_cast<std::size_t>(q.elements()), 3));
  run.set("k", sample(static_cast<std::size_t>(k.elements()), 4));
  run.set("v", std::vector<float>(static_cast<std::size_t>(k.elements()), 1.0F));
  run.set("cu_seqlens", std::vector<std::int32_t>{0, tokens});
  run.run(poison_nan);
  const std::vector<float> o = run.floats("o");
  double worst = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < o.size(); ++i) {
    const double off = std::isnan(o[i]) ? 1e30 : std::abs(static_cast<double>(o[i]) - 1);
    if (off <= worst) continue;
    worst = off;
    at = i;
  }
  Finding f;
  f.id = "D14";
  f.title = "softmax of attention over 1 to 130 keys";
  f.measured = fmt::format("rows sum to 1 within {:.2g}", worst);
  f.threshold = fmt::format("fails beyond {:.0e}", slack);
  if (worst <= slack) return f;
  f.verdict = CheckOutcome::fail;
  f.message = fmt::format("attn_out, kernel attention_fwd: the weights of {} keys sum to {:.6g}",
                          static_cast<std::int64_t>(at) / (model.heads * model.head_width) + 1,
                          static_cast<double>(o[at]));
  f.hint = look_at_kernel;
  return f;
}

}  // namespace mulligan::doctor
