// What every kernel of the cpu backend includes. A kernel is a struct as cpu_kernel.hpp describes it, derived
// from its signature (kernels/NAME/signature.h), in cpu.cpp of the same folder:
//
//   struct Forward : shapes::RmsNormForward {           // name, signature, arguments, attributes, check()
//     static void run(const Launch& launch);            // launch.data<float>(Forward::x) ...
//   };
//   const Register registered = sdk::cpu_kernel<Forward>();
#pragma once

#include <mulligan/cpu_kernel.hpp>

#include "plugins/backends/common/core_kernels.h"

namespace mulligan::cpu {

using backends::Register;
using sdk::bfloat16;
using sdk::dispatch_compute;
using sdk::float16;
using sdk::Launch;

}  // namespace mulligan::cpu
