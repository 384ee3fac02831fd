// Functions compiled ahead of time for one architecture, in one file. A function is found by all that the
// compiler gets of it, compared as a whole, so that the file never answers for other sources.
#pragma once

#include <compare>
#include <map>
#include <string>

#include "plugins/backends/cuda/compile/function_source.h"

namespace mulligan::cuda {

class KernelFile {
 public:
  // What all functions of a file have in common.
  struct Origin {
    std::string architecture;   // "sm_90a"
    std::string nvrtc_version;  // of the NVRTC that compiled them: "13.0"
    std::string context;  // what else the compiler gets: its options and the headers (compile_context())
    auto operator<=>(const Origin&) const = default;
  };

  // Without functions.
  explicit KernelFile(Origin origin) : origin_(std::move(origin)) {}
  // Throws std::runtime_error with a sentence when the file cannot be read, is none or is damaged.
  static KernelFile read(const std::string& path);

  const Origin& origin() const { return origin_; }
  std::size_t size() const { return functions_.size(); }
  // Null: not in it. Valid as long as this object.
  const CompiledFunction* find(const FunctionSource& source) const;
  void add(const FunctionSource& source, CompiledFunction function);
  // Replaces the file as a whole. Throws std::runtime_error with a sentence.
  void write(const std::string& path) const;

 private:
  Origin origin_;
  std::map<FunctionSource, CompiledFunction> functions_;
};

}  // namespace mulligan::cuda
