#include "plugins/backends/cuda/calls/compiled_call.h"
#include "plugins/backends/cuda/calls/device_call.h"
#include "plugins/backends/cuda/calls/library_call.h"
#include "plugins/backends/cuda/calls/matmul_call.h"
#include "plugins/backends/cuda/calls/product_call.h"
#include "plugins/backends/cuda/calls/source_call.h"
#include "plugins/kernels/matmul/cuda.h"

namespace mulligan::cuda {

std::unique_ptr<DeviceCall> make_device_call(Device& device, AttentionLibrary& library,
                                             SegmentRowTables& row_tables, const mlg_kernel& kernel,
                                             const mlg_call& call, const triton::CompiledKernel* compiled) {
  if (compiled) return std::make_unique<CompiledCall>(device, kernel, call, *compiled);
  if (is_product(kernel)) return std::make_unique<MatmulCall>(device, kernel, call);
  auto own = std::make_unique<SourceCall>(device, kernel, call);
  if (auto attention = AttentionCall::make(library, row_tables, kernel, own->arguments())) {
    return std::make_unique<LibraryCall>(device, std::move(own), std::move(attention));
  }
  if (const auto product = product_before(kernel, own->arguments().launch())) {
    return std::make_unique<ProductCall>(device, std::move(own), *product);
  }
  own->expect();
  return own;
}

}  // namespace mulligan::cuda
