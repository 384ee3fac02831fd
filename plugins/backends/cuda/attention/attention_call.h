// A call of attention_fwd or attention_bwd that a library's attention computes, where it can: for each batch
// of segments that comes along, the plan of its bucket and the launches around it.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "kernels/attention/cuda_rows.h"
#include "plugins/backends/common/call_arguments.h"
#include "plugins/backends/cuda/attention/attention_library.h"
#include "plugins/backends/cuda/launch_steps.h"

namespace mulligan::cuda {

class AttentionCall {
 public:
  // Null for another kernel, and where the library computes none of the call's batches. `arguments` must
  // have passed the kernel's checks, and outlive this object, as must the library.
  static std::unique_ptr<AttentionCall> make(AttentionLibrary& library, const mlg_kernel& kernel,
                                             const backends::CallArguments& arguments);
  ~AttentionCall();
  AttentionCall(const AttentionCall&) = delete;
  AttentionCall& operator=(const AttentionCall&) = delete;

  std::size_t workspace_bytes() const { return workspace_bytes_; }
  using Tensors = std::function<DeviceArgument(std::uint32_t)>;
  void bind(const Tensors& tensors, void* workspace);

  // Loads the functions of all buckets, for a device that only compiles.
  void load();

  // Which plan the segments ask for as they are now, made ready; 0: the own kernel. Not while a graph is
  // captured, unless it was asked for before.
  std::uint64_t choose();
  // How many launches there are around the plan that choose() chose.
  std::uint32_t launches() const;
  // Runs that plan.
  void run();

 private:
  struct Ready {
    std::uint64_t number = 0;  // 0: the own kernel
    Attention* plan = nullptr;
    void* room = nullptr;  // for a plan that needs more than the bound; null: the call's own workspace
    AttentionRows rows;
    LaunchSteps before, after;
    AttentionArguments arguments;
  };
  AttentionCall(AttentionLibrary& library, const AttentionShape& shape, const RowLayout& layout,
                const backends::CallArguments& arguments, std::size_t library_bytes);
  AttentionShape shape_of(const AttentionBucket& bucket) const;
  // The plan for the segments as they are now will be asked for: it begins to be made, unless it is there.
  void expect();
  Ready make_ready(const AttentionBucket& bucket);
  void place(Ready& ready) const;

  AttentionLibrary& library_;
  AttentionShape shape_;  // but for the bucket
  RowLayout layout_;
  const backends::CallArguments& arguments_;
  std::size_t own_bytes_ = 0, workspace_bytes_ = 0;
  std::map<AttentionBucket, Ready> ready_;
  Ready* chosen_ = nullptr;  // the last one that choose() chose
  Tensors tensors_;
  void* workspace_ = nullptr;
  const void* watched_ = nullptr;
  std::shared_ptr<const SegmentRows> rows_;  // of the watched boundaries
};

}  // namespace mulligan::cuda
