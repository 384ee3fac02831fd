// smear_gate on x [T,d], tokens [T], weight w [1,W], lambda [1]. Token t is open where t mod row_length is
// not 0 and tokens[t] is not document_start. With s_t = sigmoid(<w, x_t[:W]>):
//   y_t = x_t + lambda s_t x_{t-1}   (t open; else y_t = x_t)
// Backward, with c_t = <dy_t, x_{t-1}> of an open t, else 0:
//   dx_t (+)= dy_t + lambda s_{t+1} dy_{t+1} (t + 1 open), and on the window lambda s_t (1 - s_t) c_t w
//   dw += sum lambda s_t (1 - s_t) c_t x_t[:W],   dlambda += sum s_t c_t
//
// Determinism: rows are independent; sums over tokens go through partial sums over fixed pieces.
#include <mulligan/vector_math.hpp>

#include "kernels/smear_gate/signature.h"
#include "plugins/backends/cpu/math/row_math.h"
#include "plugins/backends/cpu/math/row_sums.h"

namespace mulligan::cpu::smear_gate {
namespace {

template <typename T>
struct Gate {
  using Shape = shapes::SmearGate;

  const T *x, *weight;
  const std::int32_t* tokens;
  std::int64_t count, width, window, row_length, document_start;
  float lambda;

  explicit Gate(const Launch& launch)
      : x(launch.data<const T>(Shape::x)),
        weight(launch.data<const T>(Shape::weight)),
        tokens(launch.data<const std::int32_t>(Shape::tokens)),
        count(launch.dim(Shape::x, 0)),
        width(launch.dim(Shape::x, 1)),
        window(launch.dim(Shape::weight, 1)),
        row_length(static_cast<std::int64_t>(launch.attribute(Shape::row_length))),
        document_start(static_cast<std::int64_t>(launch.attribute(Shape::document_start))),
        lambda(*launch.data<const float>(Shape::lambda)) {}

  // Whether token t takes in the one before it.
  bool open(std::int64_t t) const { return t < count && t % row_length != 0 && tokens[t] != document_start; }
  float logit(std::int64_t t) const {
    const T* row = x + t * width;
    return lane_sum(window, [=, w = weight](std::int64_t j) { return float(row[j]) * float(w[j]); });
  }
  float sigmoid(std::int64_t t) const { return sdk::fast_sigmoid(logit(t)); }
};

struct Forward : shapes::SmearGateForward {
  template <typename T>
  static void run(const Launch& launch) {
    const Gate<T> gate(launch);
    T* all_y = launch.data<T>(y);
    for_rows(launch, gate.count, gate.width, [&](std::int64_t t) {
      const T *own = gate.x + t * gate.width, *before = own - gate.width;
      T* to = all_y + t * gate.width;
      if (!gate.open(t)) {
        std::copy_n(own, gate.width, to);
        return;
      }
      const float share = gate.lambda * gate.sigmoid(t);
      write_row(to, gate.width, false,
                [=](std::int64_t j) { return float(own[j]) + share * float(before[j]); });
    });
  }
};

struct Backward : shapes::SmearGateBackward {
  static std::size_t workspace_bytes(const sdk::CallChecks& call) {
    const std::int64_t sums = call.dim(weight, 1) + 1;
    return static_cast<std::size_t>(aligned_floats(sums)) * sizeof(float) +
           row_sums_bytes(call.dim(x, 0), sums);
  }
  template <typename T>
  static void run(const Launch& launch) {
    const Gate<T> gate(launch);
    const std::int64_t width = gate.width, window = gate.window;
    const T* all_dy = launch.data<const T>(Backward::dy);
    T* all_dx = launch.data<T>(Backward::dx);
    const bool accumulate = launch.flag(Backward::accumulate_dx);
    float* dweight = launch.data<float>(Backward::dweight);
    float* dlambda = launch.data<float>(Backward::dlambda);
    float* total = launch.workspace<float>();  // of the weight [W], then of lambda
    std::fill_n(total, window + 1, 0.0f);
    const auto rows = [&](float* partial, std::int64_t t) {
      const T *own = gate.x + t * width, *dy = all_dy + t * width;
      float slope = 0;  // of the gate's logit
      if (gate.open(t)) {
        const float logit = gate.logit(t), s = sdk::fast_sigmoid(logit);
        const float along =
            lane_sum(width, [=, b = own - width](std::int64_t j) { return float(dy[j]) * float(b[j]); });
        slope =
            gate.lambda * s * sdk::fast_sigmoid(-logit) * along;  // an open gate leaves no digits of 1 - s
        if (partial) {
          write_row(partial, window, true, [=](std::int64_t j) { return slope * float(own[j]); });
          partial[window] += s * along;
        }
      }
      if (!all_dx) return;
      T* dx = all_dx + t * width;
      const float next = gate.open(t + 1) ? gate.lambda * gate.sigmoid(t + 1) : 0.0f;
      const T* dy_next = next != 0.0f ? dy + width : dy;
      write_row(dx, window, accumulate, [=, w = gate.weight](std::int64_t j) {
        return float(dy[j]) + next * float(dy_next[j]) + slope * float(w[j]);
      });
      write_row(dx + window, width - window, accumulate,
                [=](std::int64_t j) { return float(dy[window + j]) + next * float(dy_next[window + j]); });
    };
    const bool sums = dweight || dlambda;
    add_row_sums(launch, gate.count, window + 1, total + aligned_floats(window + 1), sums ? total : nullptr,
                 rows);
    for (std::int64_t j = 0; dweight && j < window; ++j) dweight[j] += total[j];
    if (dlambda) *dlambda += total[window];
  }
};

const Register registered[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cpu::smear_gate
