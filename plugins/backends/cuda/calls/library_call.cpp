#include "plugins/backends/cuda/calls/library_call.h"

#include <utility>

namespace mulligan::cuda {

LibraryCall::LibraryCall(Device& device, std::unique_ptr<SourceCall> own,
                         std::unique_ptr<AttentionCall> attention)
    : own_(std::move(own)), attention_(std::move(attention)) {
  own_->reserve(attention_->workspace_bytes());
  if (device.facts().computes) return;
  attention_->load();
  own_->expect();
}

void LibraryCall::bind(void* const* addresses, void* workspace) {
  own_->bind(addresses, workspace);
  if (!own_->memory().aligned()) attention_.reset();
  if (!attention_) return;
  attention_->bind([this](std::uint32_t index) { return own_->memory().tensor(index); }, workspace);
}

std::uint64_t LibraryCall::choice() {
  own_->memory().require_bound();
  const std::uint64_t choice = attention_ ? attention_->choose() : 0;
  return choice == 0 ? own_->choice() : choice;
}

CallWork LibraryCall::work() {
  const std::uint64_t choice = this->choice();
  return choice == 0 ? own_->work() : CallWork{attention_->launches(choice), 1};
}

void LibraryCall::run() {
  const std::uint64_t choice = this->choice();
  if (choice == 0) return own_->run();
  own_->memory().mark_outputs_unwritten();
  own_->memory().mark_workspace_unwritten();
  try {
    attention_->run(choice);
  } catch (const AttentionFailure& failure) {
    attention_->library().failed(failure);
    attention_.reset();
    return own_->run();
  }
  own_->memory().require_written();
}

}  // namespace mulligan::cuda
