// One instance of a backend plugin, loaded from its file, and single kernel calls on guarded buffers.
#pragma once

#include <mulligan/backend.h>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/kernels/array.h"
#include "tests/kernels/backend_under_test.h"
#include "tests/kernels/signature.h"

namespace mulligan::kernel_test {

// One kernel call by argument name. An argument that is not listed is absent.
struct KernelCall {
  std::string kernel;
  std::map<std::string, Array> arguments;  // `out` arguments: dtype and shape only
  std::map<std::string, double> attributes = {};
  std::map<std::string, std::string> aliases = {};  // written argument -> argument whose memory it shares
};
// `names`: of the arguments, in the order of `arguments`, separated by spaces.
KernelCall kernel_call(const std::string& kernel, const std::string& names,
                       std::initializer_list<Array> arguments, std::map<std::string, double> attributes = {},
                       std::map<std::string, std::string> aliases = {});

struct KernelResult {
  std::map<std::string, Array> written;                 // every present `out` and `inout` argument
  std::map<std::string, std::vector<std::byte>> bytes;  // the same, as stored
};

class BackendFixture {
 public:
  // A backend, and the kernels that other plugins bring (they are tested and catalogued like its own). Throws
  // std::runtime_error. What it logs goes to `log`, which must outlive it.
  explicit BackendFixture(const BackendUnderTest& under_test, std::vector<std::string>* log = nullptr);
  ~BackendFixture();
  BackendFixture(const BackendFixture&) = delete;
  BackendFixture& operator=(const BackendFixture&) = delete;

  // Prepares, binds and runs one call. Every buffer and the workspace lie between guard bytes; `out`
  // memory starts as 0xFF bytes (NaN), the workspace as garbage. Throws std::runtime_error with the
  // backend's sentence, or when the kernel wrote outside its outputs (guards, workspace guards, arguments
  // it may only read).
  KernelResult run(const KernelCall& call);

  // For a call with a value that makes no sense, such as an id outside of a table: true when the backend does
  // what it is meant to do then (backend_under_test.h), and nothing else was touched.
  bool refuses_values(const KernelCall& call);

  // Prepares only; returns the backend's sentence, or "" when the call was accepted.
  std::string refusal(const KernelCall& call);
  // Prepares and binds, to addresses at which nothing lies: for a backend that may refuse code only then.
  std::string refusal_when_bound(const KernelCall& call);

  std::vector<std::string> kernel_names() const;
  // Throws std::runtime_error when the backend has no such kernel.
  const Signature& signature(const std::string& kernel) const;

  const mlg_backend_table& table() const { return *table_; }
  void* instance() const { return instance_; }
  bool is_slow() const { return is_slow_; }

 private:
  const mlg_backend_table* table_ = nullptr;
  void* instance_ = nullptr;
  bool stops_on_bad_values_ = true, is_slow_ = false;
  std::vector<std::string>* log_ = nullptr;
  struct Known {
    std::uint32_t place = 0;
    std::string text;
    std::optional<Signature> signature;
  };
  mutable std::map<std::string, Known> signatures_;  // by kernel
};

// The program's backend with that many threads (any other variant of backend_under_test.h), made
// once per process.
BackendFixture& backend_with_threads(int threads);
// That of reference_under_test(), made once per process; null where there is none.
BackendFixture* reference_backend();

}  // namespace mulligan::kernel_test
