// A kernel's requirements on the arguments and attributes of a call, the same for every backend.
#pragma once

#include <mulligan/dtype.hpp>
#include <mulligan/kernel.hpp>
#include <mulligan/plugin.hpp>

#include <algorithm>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

// Requirements on the arguments and attributes of one call; indices follow the signature. Each throws
// std::runtime_error with a sentence that names kernel and argument. An absent optional argument passes, since the backend
// checks from the signature whether an argument may be absent.
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
  // Requires f32, bf16 or f16, the dtypes of dispatch_compute().
  void compute_dtype(std::uint32_t argument) const { dtype(argument, {MLG_F32, MLG_BF16, MLG_F16}); }
  // Requires f32 or bf16, the dtypes of dispatch_master().
  void master_dtype(std::uint32_t argument) const { dtype(argument, {MLG_F32, MLG_BF16}); }
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
  // Requires what an optimiser's scalars() fills: f32, at least `count` numbers.
  void scalars(std::uint32_t argument, std::int64_t count) const {
    dtype(argument, {MLG_F32});
    min_elements(argument, count);
  }
  // Exact shape; -1 stands for any extent.
  void shape(std::uint32_t argument, std::initializer_list<std::int64_t> extents) const {
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
  void f32(std::uint32_t argument, std::initializer_list<std::int64_t> extents) const {
    dtype(argument, {MLG_F32});
    shape(argument, extents);
  }
  void i32(std::uint32_t argument, std::initializer_list<std::int64_t> extents) const {
    dtype(argument, {MLG_I32});
    shape(argument, extents);
  }
  // Requires a matrix in a compute dtype.
  void matrix(std::uint32_t argument) const {
    compute_dtype(argument);
    rank(argument, 2, 2);
  }
  // The attribute must lie within [minimum, maximum] (a NaN does not).
  void attribute_range(std::uint32_t index, double minimum, double maximum) const {
    const double value = attribute(index);
    if (value >= minimum && value <= maximum) return;
    throw std::runtime_error(std::string("kernel ") + kernel_ + ": attribute " + attribute_name(index) +
                             " must lie within [" + std::to_string(minimum) + ", " + std::to_string(maximum) +
                             "], but it is " + std::to_string(value));
  }
  const char* kernel_name() const { return kernel_; }

 protected:
  static std::string dtype_text(int dtype) { return dtype_name(dtype); }
  // The attribute's word of the signature: the words after the semicolon, in order.
  std::string attribute_name(std::uint32_t index) const {
    std::string_view rest = signature_;
    rest.remove_prefix(std::min(rest.find(';'), rest.size() - 1) + 1);
    for (;; --index) {
      rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
      if (index == 0) return std::string(rest.substr(0, rest.find(' ')));
      rest.remove_prefix(std::min(rest.find(' '), rest.size()));
    }
  }

 private:
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
};

}  // namespace mulligan::sdk

#pragma GCC visibility pop
