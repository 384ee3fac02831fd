// Which GPUs run code that was compiled for one.
#pragma once

#include <string>

namespace mulligan::cuda::triton {

// `target`: of a PTX file ("sm_80": that and everything newer; "sm_90a": that alone; "sm_100f": its family,
// from there on). `device`: "sm_90a".
bool ptx_runs_on(const std::string& target, const std::string& device);

// `architecture`: of machine code: 86 runs on 8.6 and 8.9. Triton compiles from 9.0 on for one
// GPU alone (sm_90a).
bool cubin_runs_on(int architecture, const std::string& device);

}  // namespace mulligan::cuda::triton
