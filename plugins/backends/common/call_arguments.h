// A kernel call that was checked against the kernel's signature, with room for its addresses: what every
// computing backend keeps of a call.
#pragma once

#include <mulligan/backend.h>

#include <cstdint>
#include <vector>

#include "plugins/backends/common/kernel_signature.h"

namespace mulligan::backends {

class CallArguments {
 public:
  // Throws std::runtime_error with a sentence that names kernel and argument: a wrong number of arguments, a
  // required one left out, an attribute missing, unknown or given twice. `kernel` must outlive this object.
  CallArguments(const mlg_kernel& kernel, const mlg_call& call);

  const Signature& signature() const { return signature_; }
  // In the order of the signature; data pointers are null until bind().
  const std::vector<mlg_tensor>& tensors() const { return tensors_; }
  const std::vector<double>& attributes() const { return attributes_; }
  // What a kernel's prepare() is handed; valid while this object lives and is not moved.
  mlg_launch launch() const;

  // Fixes the addresses. Throws std::runtime_error when a present argument has none, or the workspace is
  // missing although `workspace_bytes` are needed.
  void bind(void* const* addresses, void* workspace, std::size_t workspace_bytes);

 private:
  void place_attributes(const mlg_call& call);

  const char* kernel_;
  const char* signature_text_;
  Signature signature_;
  std::vector<mlg_tensor> tensors_;
  std::vector<double> attributes_;
};

}  // namespace mulligan::backends
