// An attention call, computed by a library where it has a plan for the segments, else by the own kernel.
#pragma once

#include <memory>

#include "plugins/backends/cuda/attention/attention_call.h"
#include "plugins/backends/cuda/calls/source_call.h"

namespace mulligan::cuda {

class LibraryCall final : public DeviceCall {
 public:
  // `attention` is of the arguments of `own`.
  LibraryCall(Device& device, std::unique_ptr<SourceCall> own, std::unique_ptr<AttentionCall> attention);

  std::size_t workspace_bytes() const override { return own_->workspace_bytes(); }
  void bind(void* const* addresses, void* workspace) override;
  void expect_choice() override {
    if (attention_) attention_->expect();
  }
  std::uint64_t choice() override;
  CallWork work() override;
  void run() override;

 private:
  std::unique_ptr<SourceCall> own_;  // loaded when it is needed
  std::unique_ptr<AttentionCall>
      attention_;  // null once addresses were not aligned, as a library wants them, or it failed
};

}  // namespace mulligan::cuda
