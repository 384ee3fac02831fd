#include "plugins/backends/cpu/cpu_kernel.h"

#include <mulligan/plugin.hpp>

#include <stdexcept>

#include "plugins/backends/cpu/cpu_signature.h"

namespace mulligan::cpu {

Checker::Checker(const char* kernel, const char* signature, const mlg_launch* shapes)
    : CallChecks(kernel, signature, shapes), kernel_(kernel), signature_(signature) {}

void Checker::shape(std::uint32_t argument, std::initializer_list<std::int64_t> extents) const {
  const mlg_tensor& t = tensor(argument);
  bool equal = t.rank == static_cast<std::int32_t>(extents.size());
  std::string text;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    const std::int64_t wanted = extents.begin()[axis];
    text += (axis > 0 ? ", " : "") + (wanted < 0 ? std::string("any") : std::to_string(wanted));
    equal = equal && (wanted < 0 || wanted == t.shape[axis]);
  }
  require(equal, argument, "must have shape [" + text + "]");
}

void Checker::attribute_range(std::uint32_t index, double minimum, double maximum) const {
  const double value = attribute(index);
  if (value >= minimum && value <= maximum) return;
  throw std::runtime_error(std::string("kernel ") + kernel_ + ": attribute " +
                           parse_signature(kernel_, signature_).attributes.at(index) + " must lie within [" +
                           std::to_string(minimum) + ", " + std::to_string(maximum) + "], but it is " +
                           std::to_string(value));
}

std::vector<mlg_kernel>& registered_kernels() {
  static std::vector<mlg_kernel> kernels;
  return kernels;
}

mlg_error guarded_prepare(const char* kernel, const char* signature, void (*check)(Checker&),
                          const mlg_launch* shapes, mlg_preparation* out) {
  return sdk::guarded([&] {
    Checker checker(kernel, signature, shapes);
    check(checker);
    out->workspace_bytes = checker.workspace_bytes();
    out->state = checker.take_state().release();
  });
}

mlg_error guarded_run(const char* kernel, void (*run)(const Launch&), const mlg_launch* launch) {
  return sdk::guarded([&] {
    try {
      run(Launch(launch));
    } catch (const std::exception& error) {
      throw std::runtime_error(std::string("kernel ") + kernel + " failed: " + error.what());
    }
  });
}

void release_state(void* state) {
  delete static_cast<KernelState*>(state);
}

}  // namespace mulligan::cpu
