// C++ side of transform.h: derive from Transform and from TransformStream, then
// MULLIGAN_EXPORT_TRANSFORM(Class, name).
// With `static constexpr int biases = 2;` in the class, proposals have up to two biases; without it, one.
#pragma once

#include <mulligan/transform.h>
#include <mulligan/plugin.hpp>

#include <memory>
#include <type_traits>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

using Bias = mlg_bias;
using TransformText = mlg_transform_text;

// One stream of tokens and its learnt state; members as in transform.h.
class TransformStream {
 public:
  virtual ~TransformStream() = default;
  virtual void begin(std::int64_t place, std::int32_t token) = 0;
  // Writes at most `biases` biases of the class and returns their number.
  virtual std::uint32_t propose(std::int64_t place, Bias* out) const = 0;
  virtual void observe(std::int64_t place, std::int32_t token) = 0;
};

class Transform {
 public:
  virtual ~Transform() = default;
  // A new stream, which has learnt nothing.
  virtual std::unique_ptr<TransformStream> open(const TransformText& text) const = 0;
};

template <typename Class>
mlg_transform_table make_transform_table(const char* name) {
  auto table = new_table<Class, Transform, mlg_transform_table>(MLG_TRANSFORM, name);
  table.biases = 1;
  if constexpr (requires { Class::biases; }) table.biases = Class::biases;
  table.open = [](void* self, const mlg_transform_text* text, void** stream) -> mlg_error {
    return guarded([&] { *stream = static_cast<const Transform*>(self)->open(*text).release(); });
  };
  table.close = [](void*, void* stream) { delete static_cast<TransformStream*>(stream); };
  table.begin = [](void*, void* stream, std::int64_t place, std::int32_t token) -> mlg_error {
    return guarded([&] { static_cast<TransformStream*>(stream)->begin(place, token); });
  };
  table.propose = [](void*, void* stream, std::int64_t place, mlg_bias* out,
                     std::uint32_t* count) -> mlg_error {
    return guarded([&] { *count = static_cast<const TransformStream*>(stream)->propose(place, out); });
  };
  table.observe = [](void*, void* stream, std::int64_t place, std::int32_t token) -> mlg_error {
    return guarded([&] { static_cast<TransformStream*>(stream)->observe(place, token); });
  };
  return table;
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop

#define MULLIGAN_EXPORT_TRANSFORM(Class, name) \
  MULLIGAN_EXPORT_PLUGIN(mulligan::sdk::make_transform_table<Class>(#name))
