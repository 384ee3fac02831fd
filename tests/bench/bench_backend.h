// The cpu backend as the benchmarks use it: one kernel call on random data, run again and again.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include "framework/plugin/backend.h"

namespace mulligan::bench {

// A tensor of a call. f32 and bf16 are filled with values in [-1, 1); `values` fills i32.
struct Operand {
  mlg_dtype dtype = MLG_F32;
  std::vector<std::int64_t> shape;
  std::vector<std::int32_t> values = {};
};

// A prepared call with its memory. The number of threads is the environment's MULLIGAN_BENCH_THREADS (0 or
// unset: the backend's choice). Errors end the program with the backend's sentence.
class BenchCall {
 public:
  BenchCall(const std::string& kernel, const std::vector<Operand>& operands,
            const std::vector<mlg_attribute>& attributes);

  // Runs the call as the benchmark's loop and reports the workspace and GFLOP/s: of the mean run; of the
  // fastest run; and per second of CPU time (core_), which on one thread is a core's own speed even
  // while other programs run.
  void measure(benchmark::State& state, double flops);

 private:
  std::vector<DeviceBuffer> memory_;
  DeviceBuffer workspace_;
  PreparedCall prepared_;
};

}  // namespace mulligan::bench
