#include "plugins/backends/cuda/gpu/cudnn/descriptor.h"

#include <utility>

namespace mulligan::cuda::cudnn {

Descriptor::Descriptor(const Functions& functions, cudnnBackendDescriptorType_t type)
    : functions_(functions) {
  functions_.check(functions_.BackendCreateDescriptor(type, &raw_), "BackendCreateDescriptor");
}

Descriptor::~Descriptor() {
  if (raw_) functions_.BackendDestroyDescriptor(raw_);
}

Descriptor::Descriptor(Descriptor&& other) noexcept
    : functions_(other.functions_), raw_(std::exchange(other.raw_, nullptr)) {}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                     const void* values) {
  functions_.check(functions_.BackendSetAttribute(raw_, name, type, count, values),
                   "BackendSetAttribute of attribute " + std::to_string(name));
}

void Descriptor::set(cudnnBackendAttributeName_t name, std::span<const Descriptor* const> values) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Descriptor* value : values) raw.push_back(value->raw_);
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(raw.size()), raw.data());
}

void Descriptor::finalize() {
  functions_.check(functions_.BackendFinalize(raw_), "BackendFinalize");
}

std::int64_t Descriptor::number(cudnnBackendAttributeName_t name) const {
  std::int64_t value = 0, count = 0;
  functions_.check(functions_.BackendGetAttribute(raw_, name, CUDNN_TYPE_INT64, 1, &count, &value),
                   "BackendGetAttribute of attribute " + std::to_string(name));
  return value;
}

std::vector<Descriptor> Descriptor::held(cudnnBackendAttributeName_t name,
                                         cudnnBackendDescriptorType_t type) const {
  const std::string call = "BackendGetAttribute of attribute " + std::to_string(name);
  std::int64_t count = 0;
  functions_.check(
      functions_.BackendGetAttribute(raw_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr), call);
  std::vector<Descriptor> found;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < count; ++i) raw.push_back(found.emplace_back(functions_, type).raw_);
  if (count == 0) return found;
  functions_.check(
      functions_.BackendGetAttribute(raw_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, raw.data()),
      call);
  while (std::cmp_greater(found.size(), count)) found.pop_back();
  return found;
}

}  // namespace mulligan::cuda::cudnn
