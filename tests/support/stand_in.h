// The stubs for NVIDIA's driver and NCCL (tests/stand_in) in this process.
#pragma once

#include <memory>
#include <string>

#include "framework/plugin/backend.h"
#include "tests/stand_in/stand_in_nccl.h"

namespace mulligan {

// Their files. What opens one of them by path is found by those that ask for libcuda.so.1 or libnccl.so.2 later.
std::string stand_in_driver();
std::string stand_in_nccl_library();

// While it lives, all backends on the stub driver have one card.
class StandInSharedCard {
 public:
  StandInSharedCard();
  ~StandInSharedCard();
  StandInSharedCard(const StandInSharedCard&) = delete;
  StandInSharedCard& operator=(const StandInSharedCard&) = delete;
};

// A backend on the stub driver. From then on libcuda.so.1 and libnccl.so.2 of this
// process are the stubs.
std::unique_ptr<Backend> make_stand_in_backend();

// Keeps the work of a backend on the stub driver from going on, from where it stands now until this is gone.
class StandInGate {
 public:
  explicit StandInGate(Backend& backend);
  ~StandInGate();
  StandInGate(const StandInGate&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Sets how the stub of NCCL behaves, for as long as it lives.
class StandInFaults {
 public:
  explicit StandInFaults(const StandInNccl& wanted);
  ~StandInFaults();
  StandInFaults(const StandInFaults&) = delete;
  StandInFaults& operator=(const StandInFaults&) = delete;
};

}  // namespace mulligan
