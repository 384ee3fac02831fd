// StepRehearsal: a training step by the run's own code on a planning device and without other ranks. It records what the step
// asks of the device: kernel calls with their launches, memsets, copies and uploads, in their order. Transfers are left out.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/graph/call_access.h"
#include "framework/step/own_engine.h"

namespace mulligan {

// One thing that a step asks for.
struct StepEvent {
  enum class Kind {
    call,    // of `program`, number `call` of its graph
    zero,    // a memset of `bytes`
    copy,    // of `bytes` within the device
    upload,  // of `bytes` from the host
  };
  Kind kind = Kind::call;
  const Program* program = nullptr;
  std::size_t call = 0;
  std::int64_t bytes = 0;
};

class StepRehearsal : BackendWatch {
 public:
  // Plans all phases of `loaded` for the first of `ranks` ranks on the cuda backend's planning device (with
  // [backend]'s keys, where that is configured; kernels of [[backend.kernels]] included). Rows hold documents
  // of `document_tokens` tokens, 0: of the phase's sequence length. Changes and resolves [backend] in
  // `loaded`, which must outlive this object. Throws Error.
  StepRehearsal(LoadedConfig& loaded, PluginHost& host, int ranks, std::int64_t document_tokens);
  ~StepRehearsal() override;
  StepRehearsal(const StepRehearsal&) = delete;
  StepRehearsal& operator=(const StepRehearsal&) = delete;

  const RunConfig& config() const { return config_; }
  // Of the kernels that its steps call.
  const CallAccess& access() const { return access_; }
  // One step of a phase, an index into RunConfig::phases.
  std::vector<StepEvent> step(std::size_t phase);
  // What the cuda backend launches for a call event of the last step.
  mlg_work work(const StepEvent& call) const;
  const Program& micro_step(std::size_t phase) const;
  // Nothing where the program is no part of a step's plan.
  std::optional<StepRole> role_of(const Program* program) const;
  // Length of the segments of a phase's rows (predict_call).
  std::int64_t segment_tokens(std::size_t phase) const;

 private:
  void runs(std::span<void* const> handles) override;
  void zeroes(std::size_t bytes) override { add(StepEvent::Kind::zero, bytes); }
  void copies(std::size_t bytes) override { add(StepEvent::Kind::copy, bytes); }
  void uploads(std::size_t bytes) override { add(StepEvent::Kind::upload, bytes); }
  void add(StepEvent::Kind kind, std::size_t bytes);

  const RunConfig& config_;
  std::int64_t document_tokens_;
  bool listening_ = false;
  std::vector<StepEvent> events_;                                                  // of the last step
  std::unordered_map<const void*, std::pair<const Program*, std::size_t>> calls_;  // by handle
  OwnEngine own_;
  CallAccess access_;
};

}  // namespace mulligan
