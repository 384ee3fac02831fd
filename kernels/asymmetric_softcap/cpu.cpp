// asymmetric_softcap on z [T,V]:  y = c tanh(z / c), c = positive where z > 0, else negative
//   dz (+)= dy (1 - t^2), t = tanh(z / c)
//   dc += sum over the elements of that cap of dy (t - (z / c) (1 - t^2)), in f64: a whole matrix meets in it
//
// Determinism: elements are independent; the two sums go through partial sums over fixed pieces of rows.
#include <mulligan/vector_math.hpp>

#include "kernels/asymmetric_softcap/signature.h"
#include "plugins/backends/cpu/math/row_math.h"
#include "plugins/backends/cpu/math/row_sums.h"

namespace mulligan::cpu::asymmetric_softcap {
namespace {

struct Caps {
  float positive, negative, inverse_positive, inverse_negative;

  explicit Caps(const Launch& launch)
      : positive(*launch.data<const float>(shapes::AsymmetricSoftcap::positive)),
        negative(*launch.data<const float>(shapes::AsymmetricSoftcap::negative)),
        inverse_positive(1.0f / positive),
        inverse_negative(1.0f / negative) {}
  float inverse(float z) const { return z > 0.0f ? inverse_positive : inverse_negative; }
};

// What a piece of the rows adds to the gradients of the two caps.
struct CapSums {
  double positive = 0, negative = 0;
};

struct Forward : shapes::AsymmetricSoftcapForward {
  template <typename T>
  static void run(const Launch& launch) {
    const Caps caps(launch);
    const T* from = launch.data<const T>(z);
    write_elements<T>(launch, y, false, [=](std::int64_t i) {
      const float value = float(from[i]);
      return (value > 0.0f ? caps.positive : caps.negative) * sdk::fast_tanh(value * caps.inverse(value));
    });
  }
};

struct Backward : shapes::AsymmetricSoftcapBackward {
  static std::size_t workspace_bytes(const sdk::CallChecks& call) {
    return static_cast<std::size_t>(Pieces(call.dim(z, 0)).count) * sizeof(CapSums);
  }
  template <typename T>
  static void run(const Launch& launch) {
    const Caps caps(launch);
    const std::int64_t width = launch.dim(Backward::z, 1);
    const bool accumulate = launch.flag(Backward::accumulate_dz);
    float* dpositive = launch.data<float>(Backward::dpositive);
    float* dnegative = launch.data<float>(Backward::dnegative);
    const bool wanted = dpositive || dnegative;
    const Pieces pieces(launch.dim(Backward::z, 0));
    CapSums* sums = launch.workspace<CapSums>();
    const auto rows = [&](CapSums& sum, std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const T* z = launch.data<const T>(Backward::z) + row * width;
        const T* dy = launch.data<const T>(Backward::dy) + row * width;
        // How the result grows with the cap of its side.
        const auto growth = [=](std::int64_t j) {
          const float ratio = float(z[j]) * caps.inverse(float(z[j]));
          return float(dy[j]) * sdk::softcap_growth(ratio, sdk::fast_tanh_and_slope(ratio));
        };
        if (wanted) {
          for_blocks(width, [&](std::int64_t first, auto count) {  // few enough for sums in f32
            sum.positive += lane_sum(
                count, [=](std::int64_t j) { return float(z[first + j]) > 0.0f ? growth(first + j) : 0.0f; });
            sum.negative += lane_sum(
                count, [=](std::int64_t j) { return float(z[first + j]) > 0.0f ? 0.0f : growth(first + j); });
          });
        }
        if (!launch.has(Backward::dz)) continue;
        write_row(launch.data<T>(Backward::dz) + row * width, width, accumulate, [=](std::int64_t j) {
          return float(dy[j]) * sdk::fast_tanh_and_slope(float(z[j]) * caps.inverse(float(z[j]))).slope;
        });
      }
    };
    launch.for_each(pieces.count, 1, [&](std::int64_t piece) {
      sums[piece] = {};
      rows(sums[piece], pieces.begin(piece), pieces.end(piece));
    });
    CapSums total;
    for (std::int64_t piece = 0; wanted && piece < pieces.count; ++piece) {
      total.positive += sums[piece].positive;
      total.negative += sums[piece].negative;
    }
    if (dpositive) *dpositive = static_cast<float>(*dpositive + total.positive);
    if (dnegative) *dnegative = static_cast<float>(*dnegative + total.negative);
  }
};

const Register registered[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cpu::asymmetric_softcap
