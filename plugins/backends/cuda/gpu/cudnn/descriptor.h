// A descriptor of cuDNN's backend API, and its attributes by their C++ types.
#pragma once

#include <span>
#include <vector>

#include "plugins/backends/cuda/gpu/cudnn/functions.h"

namespace mulligan::cuda::cudnn {

template <typename T>
struct AttributeType;
#define MLG_CUDNN_ATTRIBUTE(T, name)                           \
  template <>                                                  \
  struct AttributeType<T> {                                    \
    static constexpr cudnnBackendAttributeType_t value = name; \
  }
MLG_CUDNN_ATTRIBUTE(std::int64_t, CUDNN_TYPE_INT64);
MLG_CUDNN_ATTRIBUTE(bool, CUDNN_TYPE_BOOLEAN);
MLG_CUDNN_ATTRIBUTE(char, CUDNN_TYPE_CHAR);
MLG_CUDNN_ATTRIBUTE(cudnnDataType_t, CUDNN_TYPE_DATA_TYPE);
MLG_CUDNN_ATTRIBUTE(cudnnPointwiseMode_t, CUDNN_TYPE_POINTWISE_MODE);
MLG_CUDNN_ATTRIBUTE(cudnnReduceTensorOp_t, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE);
MLG_CUDNN_ATTRIBUTE(cudnnBackendHeurMode_t, CUDNN_TYPE_HEUR_MODE);
MLG_CUDNN_ATTRIBUTE(cudnnHandle_t, CUDNN_TYPE_HANDLE);
MLG_CUDNN_ATTRIBUTE(void*, CUDNN_TYPE_VOID_PTR);
#undef MLG_CUDNN_ATTRIBUTE

// Every function throws std::runtime_error when cuDNN refuses.
class Descriptor {
 public:
  Descriptor(const Functions& functions, cudnnBackendDescriptorType_t type);
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&&) = delete;

  template <typename T>
  void set(cudnnBackendAttributeName_t name, std::span<const T> values) {
    set(name, AttributeType<T>::value, static_cast<std::int64_t>(values.size()), values.data());
  }
  template <typename T>
  void set(cudnnBackendAttributeName_t name, const T& value) {
    set(name, std::span<const T>(&value, 1));
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.raw_);
  }
  void set(cudnnBackendAttributeName_t name, std::span<const Descriptor* const> values);
  void finalize();

  std::int64_t number(cudnnBackendAttributeName_t name) const;
  // Descriptors of `type` that this one holds.
  std::vector<Descriptor> held(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type) const;

  cudnnBackendDescriptor_t raw() const { return raw_; }

 private:
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
           const void* values);

  const Functions& functions_;
  cudnnBackendDescriptor_t raw_ = nullptr;
};

}  // namespace mulligan::cuda::cudnn
