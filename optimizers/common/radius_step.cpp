#include "optimizers/common/radius_step.h"

#include <cmath>

#include "optimizers/common/directions.h"
#include "optimizers/common/momentum.h"
#include "optimizers/common/named_kernel.h"

namespace mulligan::optimizers {
namespace {

// Of a row, or of a matrix: <O,O>, <O,W>, <W,W>.
struct RadiusSums {
  double oo = 0, ow = 0, ww = 0;

  // The same of O - k W.
  RadiusSums without(double k) const { return {oo - 2 * k * ow + k * k * ww, ow - k * ww, ww}; }
  void add(const RadiusSums& other, double factor) {
    oo += factor * factor * other.oo;
    ow += factor * other.ow;
    ww += other.ww;
  }
  double distance() const { return std::sqrt(std::max(oo, 0.0)); }
  double radius() const { return std::sqrt(ww); }
};

// What the elements of a row need; first the row's sums, then their outcome.
struct RadiusRow {
  RadiusSums sums;
  float braked = 0;  // W - factor (O - braked W)
  float factor = 0;  // with the rate
  float shrink = 1;  // then times this
};

template <typename Direction, typename Master>
RadiusSums row_sums(double scale, std::int64_t columns, const Direction* direction, const Master* master) {
  RadiusSums sums;
  for (std::int64_t j = 0; j < columns; ++j) {
    const double o = scale * static_cast<double>(static_cast<float>(direction[j]));
    const auto w = static_cast<double>(static_cast<float>(master[j]));
    sums.oo += o * o;
    sums.ow += o * w;
    sums.ww += w * w;
  }
  return sums;
}

// The rows of one matrix, from their sums.
void settle(const sdk::Launch& call, RadiusRow* rows, std::int64_t count, double rate) {
  using enum RadiusStep::Attribute;
  const double least = call.attribute(eps), ratio = call.attribute(floor_ratio);
  const auto kind = static_cast<UpdateFloor>(static_cast<int>(call.attribute(RadiusStep::floor)));
  const auto pinned = static_cast<RadiusPin>(static_cast<int>(call.attribute(pin)));
  RadiusSums all;
  for (std::int64_t i = 0; i < count; ++i) all.add(rows[i].sums, 1);
  const double radial = all.ow / std::max(all.ww, 1e-12);
  const double braked = radial < 0 ? (1 - call.attribute(outward)) * radial : 0.0;
  const auto floor_of = [&](const RadiusSums& sums) {
    return std::max(1.0, ratio * std::max(sums.radius(), least) / std::max(sums.distance(), least));
  };
  double factor = 1;
  if (kind == UpdateFloor::matrix) factor = floor_of(all.without(braked));
  if (kind == UpdateFloor::equal) factor = all.radius() / std::max(all.without(braked).distance(), least);
  RadiusSums update;
  for (std::int64_t i = 0; i < count; ++i) {
    const RadiusSums sums = rows[i].sums.without(braked);
    const double own = kind == UpdateFloor::row ? floor_of(sums) : factor;
    update.add(sums, own);
    rows[i].braked = static_cast<float>(braked);
    rows[i].factor = static_cast<float>(rate * own);
  }
  if (pinned == RadiusPin::off) return;
  const double before = std::max(all.radius(), least);
  const double target =
      pinned == RadiusPin::fixed ? all.radius() : std::max(before - rate * update.ow / before, least);
  const double after = update.ww - 2 * rate * update.ow + rate * rate * update.oo;  // the square
  const double shrink = target / std::max(std::sqrt(std::max(after, 0.0)), least);
  for (std::int64_t i = 0; i < count; ++i) rows[i].shrink = static_cast<float>(shrink);
}

template <typename Direction, typename Master>
void step_row(const RadiusRow& row, float scale, float cautious, std::int64_t columns,
              const Direction* __restrict direction, Master* __restrict master) {
  for (std::int64_t j = 0; j < columns; ++j) {
    const auto w = static_cast<float>(master[j]);
    const float o = scale * static_cast<float>(direction[j]) - row.braked * w;
    const float moved = (w - row.factor * o) * row.shrink;
    master[j] = Master(o * w > 0 ? moved * cautious : moved);
  }
}

}  // namespace

void RadiusStep::check(const sdk::CallChecks& call) {
  call.master_dtype(direction);
  call.rank(direction, 2, 3);
  call.master_dtype(master);
  call.same_shape(master, direction);
  call.scalars(scalars, matrix_scalar_count);
  call.attribute_range(outward, 0, 1);
  call.attribute_range(floor, 0, 3);
  call.attribute_range(pin, 0, 2);
}

std::size_t RadiusStep::workspace_bytes(const sdk::CallChecks& call) {
  return static_cast<std::size_t>(MatrixShape::of(call, direction).all_rows()) * sizeof(RadiusRow);
}

void RadiusStep::run(const sdk::Launch& call) {
  const MatrixShape shape = MatrixShape::of(call, direction);
  const float* numbers = call.data<const float>(scalars);
  const double rate = static_cast<double>(numbers[matrix_lr]) * call.attribute(lr_multiplier);
  const double scaled = call.attribute(scale);
  const auto cautious = static_cast<float>(
      1.0 - rate * call.attribute(cautious_decay) * static_cast<double>(numbers[matrix_weight_decay_factor]));
  RadiusRow* rows = call.workspace<RadiusRow>();
  sdk::dispatch_master(call.dtype(direction), [&]<typename Direction>() {
    sdk::dispatch_master(call.dtype(master), [&]<typename Master>() {
      const auto for_rows = [&](auto&& body) {
        call.for_each(shape.all_rows(), shape.grain(), [&](std::int64_t row) {
          body(rows[row], call.data<const Direction>(direction) + row * shape.columns,
               call.data<Master>(master) + row * shape.columns);
        });
      };
      for_rows([&](RadiusRow& row, const Direction* from, const Master* to) {
        row = {};
        row.sums = row_sums(scaled, shape.columns, from, to);
      });
      call.for_each(shape.matrices, 1,
                    [&](std::int64_t matrix) { settle(call, rows + matrix * shape.rows, shape.rows, rate); });
      for_rows([&](const RadiusRow& row, const Direction* from, Master* to) {
        step_row(row, static_cast<float>(scaled), cautious, shape.columns, from, to);
      });
    });
  });
}

void record_radius_step(sdk::Recorder& recorder, const std::string& optimizer,
                        const sdk::Parameter& parameter, sdk::Value direction, sdk::Value scalars,
                        const RadiusSettings& settings) {
  launch_named<RadiusStep>(recorder, optimizer, {direction, parameter.master, scalars},
                           {{"lr_multiplier", parameter.lr_multiplier},
                            {"scale", tall_scale(recorder, parameter)},
                            {"outward", settings.outward},
                            {"floor", static_cast<int>(settings.floor)},
                            {"floor_ratio", settings.floor_ratio},
                            {"pin", static_cast<int>(settings.pin)},
                            {"cautious_decay", settings.cautious_decay},
                            {"eps", settings.eps}});
}

}  // namespace mulligan::optimizers
