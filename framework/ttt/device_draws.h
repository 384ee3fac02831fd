// DeviceDraws: uniform random values of adapters, drawn by the backend. Only keys travel there.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "framework/adapters/adapter_taps.h"
#include "framework/core/philox.h"
#include "framework/graph/program.h"

namespace mulligan {

class DeviceDraws {
 public:
  // Values of these tensors, each uniform in +-bound. `name`: of the program, and of the key's tensor in the
  // store.
  struct Range {
    const AdapterTensor* tensor;
    double bound;
  };
  DeviceDraws(TensorStore& store, const std::string& name, std::span<const Range> ranges);

  // To be bound before anything runs.
  Program& program() { return *program_; }

  // The tensor's master becomes bound * (2 uniform(i) - 1) of the stream; for one of the ranges.
  void fill(const Range& range, const PhiloxStream& stream);

 private:
  TensorStore& store_;
  std::string key_name_;
  std::unique_ptr<Program> program_;
  std::map<std::pair<std::string, double>, std::size_t> calls_;  // by master and bound
};

}  // namespace mulligan
