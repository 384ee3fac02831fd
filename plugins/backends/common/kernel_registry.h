// The kernels that one backend can run, by name.
#pragma once

#include <mulligan/kernel.h>

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace mulligan::backends {

class KernelRegistry {
 public:
  // `backend`: kernels of other backends are ignored.
  explicit KernelRegistry(std::string backend) : backend_(std::move(backend)) {}

  // Throws std::runtime_error when a name is known and `replace` is not set, or a signature is malformed. A
  // replaced kernel keeps its place, and calls prepared with it their own copy.
  void add(std::span<const mlg_kernel> kernels, bool replace);
  // Null past the end.
  const mlg_kernel* at(std::uint32_t index) const noexcept;
  // Throws std::runtime_error where there is none.
  const mlg_kernel& named(std::string_view name) const;

 private:
  std::string backend_;
  std::deque<mlg_kernel> kernels_;                         // pointers handed out by at() stay valid
  std::map<std::string, std::size_t, std::less<>> index_;  // name -> position in kernels_
};

}  // namespace mulligan::backends
