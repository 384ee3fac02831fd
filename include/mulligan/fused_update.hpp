// The work that update kernels of optimisers do in the same pass as their formula (mlg_update of optimizer.h). They scale the
// gradient, and make an average and a copy of the new master. The device side is cuda/fused_update.cuh. At the end of its
// arguments and of its attributes, a kernel's signature has:
//   in? gradient_scale [1] f32, inout? average f32, out? copy; ... average_decay
#pragma once

#include <mulligan/optimizer.h>
#include <mulligan/cpu_kernel.hpp>
#include <mulligan/recorder.hpp>

#include <algorithm>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

// The values of parameter number `index` and the attribute, in the order of the signature.
inline Value average_of(const mlg_update& update, std::size_t index) {
  return update.averages ? update.averages[index] : absent;
}
inline Value copy_of(const mlg_update& update, std::size_t index) {
  return update.copies ? update.copies[index] : absent;
}

// The places of these arguments and of the attribute in a kernel's signature; `master` is the parameter that it updates.
struct FusedUpdate {
  static constexpr std::uint32_t no_scale = ~0u;  // the kernel has no gradient_scale
  std::uint32_t master, gradient_scale, average, copy, average_decay;

  void check(const CallChecks& call) const {
    if (gradient_scale != no_scale) call.f32(gradient_scale, {1});
    call.dtype(average, {MLG_F32});
    call.same_shape(average, master);
    call.compute_dtype(copy);
    call.same_shape(copy, master);
    call.attribute_range(average_decay, 0.0, 1.0);
  }

  // The factor on all gradients, for a kernel with gradient_scale.
  float scale(const Launch& call) const {
    return call.has(gradient_scale) ? *call.data<const float>(gradient_scale) : 1.0f;
  }

  // Calls update(begin, end) for pieces of all elements. It writes the new masters; averages and copies of a piece are made
  // while the piece is in the cache.
  template <typename Master, typename Update>
  void run(const Launch& call, Update&& update) const {
    constexpr std::int64_t kPiece = 4096;
    call.parallel_for(call.size(master), 4 * kPiece, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t at = begin; at < end; at += kPiece) {
        const std::int64_t stop = std::min(end, at + kPiece);
        update(at, stop);
        finish<Master>(call, at, stop);
      }
    });
  }

 private:
  template <typename Master>
  void finish(const Launch& call, std::int64_t begin, std::int64_t end) const {
    const Master* __restrict p = call.data<const Master>(master);
    if (float* __restrict mean = call.data<float>(average)) {
      const auto keep = static_cast<float>(call.attribute(average_decay));
      const auto take = static_cast<float>(1.0 - call.attribute(average_decay));
      for (std::int64_t i = begin; i < end; ++i) mean[i] = keep * mean[i] + take * static_cast<float>(p[i]);
    }
    if (!call.has(copy)) return;
    dispatch_compute(call.dtype(copy), [&]<typename Copy>() {
      Copy* __restrict to = call.data<Copy>(copy);
      for (std::int64_t i = begin; i < end; ++i) to[i] = Copy(static_cast<float>(p[i]));
    });
  }
};

}  // namespace mulligan::sdk

#pragma GCC visibility pop
