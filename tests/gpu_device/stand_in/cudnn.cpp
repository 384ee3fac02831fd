// A stand-in for libcudnn.so.9 that takes every graph, and executes it or not as it is told to.
#include <cudnn_graph.h>

#include <cstring>

#include "tests/gpu_device/stand_in/stand_in.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED std::size_t cudnnGetVersion() {
  return 91900;
}
EXPORTED const char* cudnnGetErrorString(cudnnStatus_t) {
  return "CUDNN_STATUS_EXECUTION_FAILED";
}
EXPORTED void cudnnGetLastErrorString(char* text, std::size_t bytes) {
  std::strncpy(text, "the stand-in was told to", bytes);
}
EXPORTED cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = reinterpret_cast<cudnnHandle_t>(&stand_in());
  return CUDNN_STATUS_SUCCESS;
}
EXPORTED cudnnStatus_t cudnnDestroy(cudnnHandle_t) {
  return CUDNN_STATUS_SUCCESS;
}
EXPORTED cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t) {
  return CUDNN_STATUS_SUCCESS;
}
EXPORTED cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                                    cudnnBackendDescriptor_t* made) {
  if (type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) ++stand_in().plans;
  *made = reinterpret_cast<cudnnBackendDescriptor_t>(&stand_in());
  return CUDNN_STATUS_SUCCESS;
}
EXPORTED cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t) {
  return CUDNN_STATUS_SUCCESS;
}
EXPORTED cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                                                cudnnBackendAttributeType_t, std::int64_t, const void*) {
  return CUDNN_STATUS_SUCCESS;
}
// One engine; 17 KiB of workspace.
EXPORTED cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t name,
                                                cudnnBackendAttributeType_t, std::int64_t,
                                                std::int64_t* count, void* values) {
  if (count) *count = 1;
  if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) *static_cast<std::int64_t*>(values) = 17 << 10;
  return CUDNN_STATUS_SUCCESS;
}
EXPORTED cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t) {
  return CUDNN_STATUS_SUCCESS;
}
EXPORTED cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t,
                                           cudnnBackendDescriptor_t) {
  ++stand_in().executions;
  return stand_in().execution_fails ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
}
