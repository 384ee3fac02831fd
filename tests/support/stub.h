// The stubs for NVIDIA's driver and NCCL (tests/stub) in this process.
#pragma once

#include <memory>
#include <string>

#include "framework/plugin/backend.h"
#include "tests/stub/stub_nccl.h"

namespace mulligan {

// Their files. What opens one of them by path is found by those that ask for libcuda.so.1 or libnccl.so.2 later.
std::string stub_driver();
std::string stub_nccl_library();

// While it lives, all backends on the stub driver have one card.
class StubSharedCard {
 public:
  StubSharedCard();
  ~StubSharedCard();
  StubSharedCard(const StubSharedCard&) = delete;
  StubSharedCard& operator=(const StubSharedCard&) = delete;
};

// A backend on the stub driver. From then on libcuda.so.1 and libnccl.so.2 of this
// process are the stubs.
std::unique_ptr<Backend> make_stub_backend();

// Holds the work of a backend on the stub driver at its present place for as long as this lives.
class StubGate {
 public:
  explicit StubGate(Backend& backend);
  ~StubGate();
  StubGate(const StubGate&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Sets how the stub of NCCL behaves, for as long as it lives.
class StubFaults {
 public:
  explicit StubFaults(const StubNccl& wanted);
  ~StubFaults();
  StubFaults(const StubFaults&) = delete;
  StubFaults& operator=(const StubFaults&) = delete;
};

}  // namespace mulligan
