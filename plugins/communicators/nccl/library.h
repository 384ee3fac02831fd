// NCCL's functions, loaded when they are needed, and declared here: its header is not needed to build.
#pragma once

#include <cstddef>
#include <string>

#include "plugins/common/shared_library.h"
#include "plugins/communicators/nccl/driver.h"

namespace mulligan::nccl_ranks {

using Comm = void*;  // ncclComm_t

// As in nccl.h.
enum Result : int { kSuccess = 0, kInProgress = 7 };
enum DataType : int { kUint8 = 1, kFloat32 = 7, kFloat64 = 8, kBfloat16 = 9 };
inline constexpr int kSum = 0;
struct UniqueId {
  char bytes[128];
};
// ncclConfig_t as of NCCL 2.18; newer libraries read the members that `size` covers, and take defaults for
// the rest.
struct CommConfig {
  std::size_t size = sizeof(CommConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = 0;
  int cga_cluster_size = kUndefined, least_blocks = kUndefined, most_blocks = kUndefined;
  const char* network = nullptr;
  int split_share = kUndefined;
  static constexpr int kUndefined = -2147483647 - 1;
};

struct Nccl {
  // Opens `path`, or where that is empty what the dynamic linker finds. Throws std::runtime_error in one
  // sentence where NCCL is missing or older than 2.18.
  explicit Nccl(const std::string& path);

  // Throws std::runtime_error that names the call where `result` is an error; kInProgress is none.
  void check(int result, const char* call) const;

  plugins::SharedLibrary library;
  int (*GetVersion)(int*) = library["ncclGetVersion"];
  int (*GetUniqueId)(UniqueId*) = library["ncclGetUniqueId"];
  int (*CommInitRankConfig)(Comm*, int size, UniqueId, int rank,
                            CommConfig*) = library["ncclCommInitRankConfig"];
  int (*CommGetAsyncError)(Comm, int*) = library["ncclCommGetAsyncError"];
  int (*CommFinalize)(Comm) = library["ncclCommFinalize"];
  int (*CommDestroy)(Comm) = library["ncclCommDestroy"];
  int (*CommAbort)(Comm) = library["ncclCommAbort"];
  const char* (*GetErrorString)(int) = library["ncclGetErrorString"];
  const char* (*GetLastError)(Comm) = library["ncclGetLastError"];
  int (*GroupStart)() = library["ncclGroupStart"];
  int (*GroupEnd)() = library["ncclGroupEnd"];
  int (*AllReduce)(const void*, void*, std::size_t, int dtype, int operation, Comm,
                   CudaStream) = library["ncclAllReduce"];
  int (*ReduceScatter)(const void*, void*, std::size_t, int dtype, int operation, Comm,
                       CudaStream) = library["ncclReduceScatter"];
  int (*Reduce)(const void*, void*, std::size_t, int dtype, int operation, int root, Comm,
                CudaStream) = library["ncclReduce"];
  int (*AllGather)(const void*, void*, std::size_t, int dtype, Comm, CudaStream) = library["ncclAllGather"];
  int (*Broadcast)(const void*, void*, std::size_t, int dtype, int root, Comm,
                   CudaStream) = library["ncclBroadcast"];
  int (*Send)(const void*, std::size_t, int dtype, int peer, Comm, CudaStream) = library["ncclSend"];
  int (*Recv)(void*, std::size_t, int dtype, int peer, Comm, CudaStream) = library["ncclRecv"];
};

}  // namespace mulligan::nccl_ranks
