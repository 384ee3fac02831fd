// A stand-in for libcudnn.so.9 that takes every graph, and executes it or not as it is told to.
#include <cudnn_graph.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>

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
  ++stand_in().handles;
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
  if (type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    static std::mutex mutex;
    static std::condition_variable more;
    std::unique_lock lock(mutex);
    StandIn& seen = stand_in();
    ++seen.plans;
    seen.most_plans_at_once = std::max(seen.most_plans_at_once, ++seen.plans_under_way);
    more.notify_all();
    more.wait_for(lock, std::chrono::seconds(20),
                  [&] { return seen.most_plans_at_once >= seen.plan_together; });
    --seen.plans_under_way;
  }
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
