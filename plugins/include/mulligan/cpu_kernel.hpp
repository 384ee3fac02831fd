// Writing a CPU kernel in C++: argument checks before the first launch, exceptions turned into sentences.
//
//   struct Scale {
//     static constexpr const char* name = "my_scale";
//     static constexpr const char* signature = "in x, out y; factor";
//     static void check(CallChecks& call) { call.compute_dtype(0); call.like(1, 0); }
//     static void run(const Launch& call) { ... call.parallel_for(call.size(0), 4096, ...); }
//   };
//   const mlg_kernel kernels[] = {cpu_kernel<Scale>()};
//
// check() runs once per recorded call and may throw and allocate; run() may do neither.
#pragma once

#include <mulligan/kernel.hpp>
#include <mulligan/plugin.hpp>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

#pragma GCC visibility push(hidden)

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

// Requirements on the arguments and attributes of one call; indices follow the signature. Each throws
// std::runtime_error with a sentence that names kernel and argument. An absent optional argument passes:
// whether an argument may be absent is checked by the backend, from the signature.
class CallChecks : public Launch {
 public:
  using Launch::dtype;  // the overload below would hide it
  CallChecks(const char* kernel, const char* signature, const mlg_launch* shapes)
      : Launch(shapes), kernel_(kernel), signature_(signature) {}

  void require(bool ok, std::uint32_t argument, const std::string& requirement) const {
    if (ok || !has(argument)) return;
    throw std::runtime_error(std::string("kernel ") + kernel_ + ": argument " + name_of(argument) + " " +
                             requirement + ", but it is " + describe(tensor(argument)));
  }
  void dtype(std::uint32_t argument, std::initializer_list<mlg_dtype> allowed) const {
    std::string list;
    for (const mlg_dtype candidate : allowed) list += (list.empty() ? "" : " or ") + dtype_text(candidate);
    const bool ok = std::find(allowed.begin(), allowed.end(), Launch::dtype(argument)) != allowed.end();
    require(ok, argument, "must be " + list);
  }
  // f32 or bf16, what dispatch_compute() tells apart.
  void compute_dtype(std::uint32_t argument) const { dtype(argument, {MLG_F32, MLG_BF16}); }
  void same_dtype(std::uint32_t argument, std::uint32_t as) const {
    require(!has(as) || tensor(argument).dtype == tensor(as).dtype, argument,
            "must have the dtype of " + name_of(as));
  }
  void rank(std::uint32_t argument, int minimum, int maximum) const {
    require(tensor(argument).rank >= minimum && tensor(argument).rank <= maximum, argument,
            "must have rank " + std::to_string(minimum) + " to " + std::to_string(maximum));
  }
  void same_shape(std::uint32_t argument, std::uint32_t as) const {
    const mlg_tensor &a = tensor(argument), &b = tensor(as);
    require(!has(as) || (a.rank == b.rank && std::equal(a.shape, a.shape + MLG_MAX_RANK, b.shape)), argument,
            "must have the shape of " + name_of(as));
  }
  void like(std::uint32_t argument, std::uint32_t as) const {
    same_shape(argument, as);
    same_dtype(argument, as);
  }
  void min_elements(std::uint32_t argument, std::int64_t minimum) const {
    require(size(argument) >= minimum, argument,
            "must have at least " + std::to_string(minimum) + " elements");
  }
  // What run() finds in Launch::workspace(): 64-byte aligned, contents undefined.
  void workspace(std::size_t bytes) { workspace_bytes_ = bytes; }
  std::size_t workspace_bytes() const { return workspace_bytes_; }

 private:
  static std::string dtype_text(int dtype) {
    constexpr const char* names[] = {"f32", "bf16", "f16", "f64", "i32", "i64", "u16", "u8", "i8"};
    return dtype >= 0 && dtype < static_cast<int>(std::size(names)) ? names[dtype] : "absent";
  }
  static std::string describe(const mlg_tensor& tensor) {
    std::string text = dtype_text(tensor.dtype) + " [";
    for (int axis = 0; axis < tensor.rank; ++axis) {
      text += (axis ? ", " : "") + std::to_string(tensor.shape[axis]);
    }
    return text + "]";
  }
  // The argument's word of the signature: "in? gate" -> "gate".
  std::string name_of(std::uint32_t argument) const {
    std::string_view rest = std::string_view(signature_).substr(0, std::string_view(signature_).find(';'));
    for (; argument > 0 && rest.find(',') != rest.npos; --argument) rest.remove_prefix(rest.find(',') + 1);
    rest = rest.substr(0, rest.find(','));
    rest = rest.substr(0, rest.find_last_not_of(' ') + 1);
    return std::string(rest.substr(rest.find_last_of(' ') + 1));
  }

  const char* kernel_;
  const char* signature_;
  std::size_t workspace_bytes_ = 0;
};

namespace cpu_kernel_detail {

template <typename Kernel>
mlg_error prepare(const mlg_launch* shapes, mlg_preparation* out) noexcept {
  return guarded([&] {
    CallChecks checks(Kernel::name, Kernel::signature, shapes);
    Kernel::check(checks);
    *out = {nullptr, checks.workspace_bytes()};
  });
}

template <typename Kernel>
mlg_error run(const mlg_launch* launch) noexcept {
  return guarded([&] { Kernel::run(Launch(launch)); });
}

}  // namespace cpu_kernel_detail

// The table entry of a kernel written as in the example above.
template <typename Kernel>
constexpr mlg_kernel cpu_kernel() {
  return {Kernel::name,      "cpu",
          Kernel::signature, &cpu_kernel_detail::prepare<Kernel>,
          nullptr,           &cpu_kernel_detail::run<Kernel>,
          nullptr,           nullptr};
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop

#pragma GCC visibility pop
