// One kernel call of a program on a device, and what it should have given: once, from the device's own memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/graph/call_access.h"
#include "framework/graph/program.h"
#include "framework/plugin/backend.h"
#include "tests/first_contact/agreement.h"

namespace mulligan::first_contact {

// Where a program's values lie. And workspace, which every call gets filled with `nan_bytes`.
struct ProgramMemory {
  const TensorStore* store = nullptr;
  void* arena = nullptr;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  const DeviceBuffer* nan_bytes = nullptr;  // each byte 0xFF
};

// How a call is treated.
enum class Treatment { compare, run_only, take_over };

class ComparedCall {
 public:
  // `device` has bound `program` to `memory`. `reference` computes on the host (the cpu backend).
  ComparedCall(Backend& device, Backend& reference, Program& program, std::size_t index,
               const ProgramMemory& memory);

  // Runs the call (take_over: in its place the reference) and reports the outcome. Outputs that it does not read are NaN
  // before, so that a missing element shows. If results are wrong or missing and the reference has whole ones, the device's
  // memory gets those. So later calls are judged by their own work.
  CallReport run(Treatment treatment);

 private:
  struct Argument {
    TensorType type;
    Access access;
    std::size_t region = 0;
    std::int64_t offset = 0;  // bytes within the region
  };
  // Memory that arguments share: of one value of the graph, from the first byte to the last that is mentioned.
  struct Region {
    std::uint32_t root = 0;
    std::int64_t begin = 0, end = 0, covered = 0;  // covered: bytes of the arguments in it
    std::byte* device = nullptr;
    bool read = false, written = false;
    std::vector<std::byte> before, after;
    DeviceBuffer reference;
  };

  void place_arguments(const ProgramMemory& memory);
  void poison();
  std::string run_on_device(CallReport& report);
  std::string run_on_reference();
  void put_reference_results();
  HostTensor seen(std::size_t argument, std::vector<std::byte> Region::*when) const;
  HostTensor before(std::size_t argument) const { return seen(argument, &Region::before); }
  HostTensor after(std::size_t argument) const { return seen(argument, &Region::after); }
  void judge_argument(CallReport& report, const std::string& reference, const std::string& name,
                      const Agreement& agreement, std::size_t argument) const;
  bool judge_by_samples(CallReport& report) const;
  void judge_by_reference(CallReport& report) const;

  Backend &device_, &reference_;
  Program& program_;
  std::size_t index_;
  const Call& call_;
  ProgramMemory memory_;
  std::vector<std::string> names_;  // of the arguments, by the kernel's signature
  std::vector<Argument> arguments_;
  std::vector<Region> regions_;
  bool narrow_ = false;  // some argument has 16 bits
};

}  // namespace mulligan::first_contact
