// A stub of libcudnn.so.9. It keeps the graphs that it is given and refuses what the attention engines of its version do
// not take. It judges the memory of executions (cudnn_rules.h), and executes graphs (cudnn_execution.h) if a test asks for that.
#include <cudnn_graph.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "tests/gpu_device/stub/cudnn_execution.h"
#include "tests/gpu_device/stub/cudnn_rules.h"
#include "tests/stub/report.h"
#include "tests/stub/stub.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

using namespace stub_cudnn;

namespace {

thread_local std::string last_error;
struct Handle {
  cudaStream_t stream = nullptr;
};
Handle& of(cudnnHandle_t handle) {
  return *reinterpret_cast<Handle*>(handle);
}
struct Report {
  ~Report() { stubs::report("cudnn", stub().executions, {}); }
} report;

cudnnStatus_t refuse(cudnnStatus_t status, std::string why) {
  last_error = std::move(why);
  return status;
}

Descriptor& descriptor(cudnnBackendDescriptor_t raw) {
  return *reinterpret_cast<Descriptor*>(raw);
}

std::size_t bytes_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
    case CUDNN_TYPE_HANDLE:
      return 8;
    default:
      return 4;  // enumerations
  }
}

void count_plan() {
  static std::mutex mutex;
  static std::condition_variable more;
  std::unique_lock lock(mutex);
  Stub& seen = stub();
  if (std::exchange(seen.planning_throws, false)) throw std::bad_alloc();
  ++seen.plans;
  seen.most_plans_at_once = std::max(seen.most_plans_at_once, ++seen.plans_under_way);
  more.notify_all();
  more.wait_for(lock, std::chrono::seconds(20),
                [&] { return seen.most_plans_at_once >= seen.plan_together; });
  --seen.plans_under_way;
}

}  // namespace

EXPORTED std::size_t cudnnGetVersion() {
  return stub().cudnn_version;
}
EXPORTED std::size_t cudnnGetCudartVersion() {
  return stub().cudnn_cuda;
}
EXPORTED const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_EXECUTION_FAILED ? "CUDNN_STATUS_EXECUTION_FAILED"
         : status == CUDNN_STATUS_NOT_SUPPORTED  ? "CUDNN_STATUS_NOT_SUPPORTED"
                                                 : "CUDNN_STATUS_BAD_PARAM";
}
EXPORTED void cudnnGetLastErrorString(char* text, std::size_t bytes) {
  std::strncpy(text, std::exchange(last_error, {}).c_str(), bytes - 1);
}
EXPORTED cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  ++stub().handles;
  *handle = reinterpret_cast<cudnnHandle_t>(new Handle);
  return CUDNN_STATUS_SUCCESS;
}
EXPORTED cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  ++stub().handles_destroyed;
  delete &of(handle);
  return CUDNN_STATUS_SUCCESS;
}
EXPORTED cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  of(handle).stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
EXPORTED cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                                    cudnnBackendDescriptor_t* made) {
  if (type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) count_plan();
  *made = reinterpret_cast<cudnnBackendDescriptor_t>(new Descriptor{type, {}, {}});
  return CUDNN_STATUS_SUCCESS;
}
EXPORTED cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t raw) {
  delete &descriptor(raw);
  return CUDNN_STATUS_SUCCESS;
}
EXPORTED cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t raw,
                                                cudnnBackendAttributeName_t name,
                                                cudnnBackendAttributeType_t type, std::int64_t count,
                                                const void* values) {
  Descriptor& own = descriptor(raw);
  if (own.graph) return refuse(CUDNN_STATUS_BAD_PARAM, "an attribute was set after finalisation");
  const auto* bytes = static_cast<const char*>(values);
  own.attributes[name].assign(bytes, bytes + static_cast<std::size_t>(count) * bytes_of(type));
  return CUDNN_STATUS_SUCCESS;
}
// One engine for each graph.
EXPORTED cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t raw,
                                                cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t,
                                                std::int64_t wanted, std::int64_t* count, void* values) {
  if (count) *count = 1;
  if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)
    *static_cast<std::int64_t*>(values) = stub().plan_workspace;
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS && wanted > 0)
    descriptor(*static_cast<cudnnBackendDescriptor_t*>(values)).graph = descriptor(raw).graph;
  return CUDNN_STATUS_SUCCESS;
}
EXPORTED cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t raw) {
  Descriptor& own = descriptor(raw);
  if (own.type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) own.graph = std::make_shared<Graph>(graph_of(own));
  if (own.type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)
    own.graph = own.held(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH).at(0)->graph;
  if (own.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    own.graph = own.held(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).at(0)->graph;
    const std::string unsupported = unsupported_in(*own.graph);
    if (!unsupported.empty()) return refuse(CUDNN_STATUS_NOT_SUPPORTED, unsupported);
    own.graph->workspace = stub().plan_workspace;
  }
  return CUDNN_STATUS_SUCCESS;
}
EXPORTED cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                           cudnnBackendDescriptor_t pack) {
  ++stub().executions;
  if (stub().execution_fails) return refuse(CUDNN_STATUS_EXECUTION_FAILED, "the stub was told to");
  const std::shared_ptr<Graph> graph = descriptor(plan).graph;
  Execution execution;
  bool is_sound = judge_names(*graph, descriptor(pack), execution);
  if (stubs::is_planted("cudnn", stub().executions)) execution.addresses.begin()->second += 2;
  if (is_sound && stub().computes) {
    const Numbers numbers = numbers_of(*graph, execution);
    const auto work = [graph, execution, numbers] {
      if (judge_memory(*graph, execution)) execute(*graph, execution, numbers);
    };
    is_sound = stub_enqueues(of(handle).stream, work) == 0;
  } else if (is_sound) {
    is_sound = judge_memory(*graph, execution);
  }
  return is_sound ? CUDNN_STATUS_SUCCESS : refuse(CUDNN_STATUS_EXECUTION_FAILED, stub().violation);
}
