#include "framework/run/parameter_store.h"

#include <mulligan/kernel.hpp>

#include <cstring>
#include <stdexcept>

#include "framework/graph/program.h"

namespace mulligan {

std::vector<std::byte> encode_floats(const std::vector<float>& values, DType dtype) {
  if (dtype != MLG_F32 && dtype != MLG_BF16 && dtype != MLG_F16)
    throw std::logic_error("encode_floats: only f32, bf16 and f16");
  std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(dtype_size(dtype)));
  sdk::dispatch_compute(dtype, [&]<typename T>() {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const T stored(values[i]);
      std::memcpy(bytes.data() + sizeof(T) * i, &stored, sizeof(T));
    }
  });
  return bytes;
}

void upload_master(TensorStore& store, const ParameterLayout& layout, const std::vector<float>& values) {
  store.upload(master_name(layout.spec.name), encode_floats(values, layout.master));
}

void refresh_copies(TensorStore& store, const std::vector<ParameterLayout>& layouts) {
  Graph copies;
  build_refresh_copies(copies, layouts);
  store.create_externals(copies);
  Program refresh(store.backend(), std::move(copies), "refresh");
  SharedArena arena(store.backend());
  arena.bind({&refresh}, store);
  refresh.run();
  store.backend().synchronize();
}

}  // namespace mulligan
