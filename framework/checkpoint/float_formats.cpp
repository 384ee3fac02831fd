#include "framework/checkpoint/float_formats.h"

#include <mulligan/kernel.hpp>

#include <cstring>
#include <stdexcept>
#include <utility>

#include "framework/core/error.h"

namespace mulligan {

bool is_weight_format(DType type) {
  return type == MLG_F32 || type == MLG_BF16 || type == MLG_F16;
}

void require_weight_format(const std::filesystem::path& file, const StoredTensor& tensor) {
  if (is_weight_format(tensor.type)) return;
  throw data_error("'{}' holds '{}' as {}, but weights are F32, BF16 or F16.", file.string(), tensor.name,
                   stored_name(tensor.type));
}

namespace {

// Calls body<T>() with the number of a weight format.
template <typename Body>
auto with_number(DType type, Body&& body) {
  if (!is_weight_format(type)) throw std::logic_error("not a format of weights");
  return sdk::dispatch_compute(type, std::forward<Body>(body));
}

}  // namespace

std::vector<float> decode_weights(std::span<const std::byte> bytes, DType type) {
  return with_number(type, [&]<typename T>() {
    std::vector<float> values(bytes.size() / sizeof(T));
    for (std::size_t i = 0; i < values.size(); ++i) {
      T stored;
      std::memcpy(&stored, bytes.data() + sizeof(T) * i, sizeof(T));
      values[i] = stored;
    }
    return values;
  });
}

std::vector<std::byte> encode_weights(std::span<const float> values, DType type) {
  return with_number(type, [&]<typename T>() {
    std::vector<std::byte> bytes(values.size() * sizeof(T));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const T stored(values[i]);
      std::memcpy(bytes.data() + sizeof(T) * i, &stored, sizeof(T));
    }
    return bytes;
  });
}

}  // namespace mulligan
