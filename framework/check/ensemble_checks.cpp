// Checks of ensemble plugins.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "framework/check/kind_checks.h"
#include "framework/core/philox.h"
#include "framework/plugin/ensemble.h"

namespace mulligan {
namespace {

using ParallelFor = void (*)(std::int64_t, std::int64_t, void (*)(void*, std::int64_t, std::int64_t), void*);

// Backwards, each piece as short as `grain` allows.
void in_many_pieces(std::int64_t count, std::int64_t grain, void (*body)(void*, std::int64_t, std::int64_t),
                    void* context) {
  const std::int64_t step = std::max<std::int64_t>(grain, 1);
  for (std::int64_t begin = (count - 1) / step * step; begin >= 0; begin -= step)
    body(context, begin, std::min(count, begin + step));
}

struct Shape {
  std::int64_t rows, columns;
};
constexpr Shape row_shapes[] = {{1, 1}, {1, 7}, {5, 3}, {67, 33}};

// A member's weight of made-up values, one row of zeros; where nothing was written NaN stays.
std::vector<float> made(const Ensemble& ensemble, Shape shape, std::int64_t tensor, std::int64_t member,
                        std::uint64_t seed = 3, ParallelFor loop = in_one_piece) {
  const auto size = static_cast<std::size_t>(shape.rows * shape.columns);
  std::vector<float> centre(size), out(size, std::numeric_limits<float>::quiet_NaN());
  PhiloxStream(17, "ensemble check").fill_normal(centre, 0.02);
  if (shape.rows > 1) std::fill_n(centre.begin(), shape.columns, 0.0F);
  ensemble.make({"weight", centre.data(), shape.rows, shape.columns, tensor, seed, member, loop}, out.data());
  return out;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

void check_ensemble(const PluginHandle& plugin, const PluginConfig& config, CheckList& list) {
  const Ensemble ensemble(plugin, config);
  list.add("members and the reference are written whole and finite", [&]() -> std::string {
    for (const Shape shape : row_shapes) {
      for (const std::int64_t member :
           {std::int64_t{MLG_ENSEMBLE_REFERENCE}, std::int64_t{0}, std::int64_t{9}}) {
        const std::vector<float> weight = made(ensemble, shape, 2, member);
        const auto odd = std::ranges::find_if(weight, [](float value) { return !std::isfinite(value); });
        if (odd == weight.end()) continue;
        return fmt::format("element {} of member {} of [{}, {}] is not finite, or was not written",
                           odd - weight.begin(), member, shape.rows, shape.columns);
      }
    }
    return {};
  });
  list.add("the same member has the same bits, whatever was made before and however work is cut",
           [&]() -> std::string {
             for (const Shape shape : row_shapes) {
               const std::vector<float> once = made(ensemble, shape, 1, 4);
               made(ensemble, {3, 5}, 0, 2);
               if (!same_bits(once, made(ensemble, shape, 1, 4)))
                 return fmt::format("member 4 of [{}, {}] differs the second time", shape.rows,
                                    shape.columns);
               if (!same_bits(once, made(ensemble, shape, 1, 4, 3, in_many_pieces)))
                 return fmt::format("member 4 of [{}, {}] depends on how parallel_for cuts", shape.rows,
                                    shape.columns);
             }
             return {};
           });
  list.add("the reference depends on no seed", [&]() -> std::string {
    const Shape shape{67, 33};
    if (same_bits(made(ensemble, shape, 1, MLG_ENSEMBLE_REFERENCE, 3),
                  made(ensemble, shape, 1, MLG_ENSEMBLE_REFERENCE, 4)))
      return {};
    return "another seed gives another reference";
  });
  list.add("stored bytes are finite, not negative and grow with the weight", [&]() -> std::string {
    const double small = ensemble.stored_bytes(5, 3), large = ensemble.stored_bytes(67, 33);
    if (std::isfinite(small) && std::isfinite(large) && small >= 0 && small <= large) return {};
    return fmt::format("[5, 3] takes {} bytes, [67, 33] {}", small, large);
  });
}

}  // namespace mulligan
