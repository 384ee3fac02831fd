// What a build without cuDNN's headers has of it: a sentence.
#include <stdexcept>

#include "plugins/backends/cuda/gpu/cudnn/cudnn.h"

namespace mulligan::cuda {

struct Cudnn::Library {};

Cudnn::Cudnn(GpuDevice&, int, int) {
  throw std::runtime_error("this program was built without the headers of cuDNN 9.16 or newer");
}

Cudnn::~Cudnn() = default;

std::size_t Cudnn::plans() const {
  return 0;
}

void Cudnn::expect(const AttentionShape&) {}

std::optional<std::size_t> Cudnn::workspace_bytes(const AttentionShape&, std::string&) const {
  return std::nullopt;
}

std::unique_ptr<Attention> Cudnn::attention(const AttentionShape&, std::string&) {
  return nullptr;
}

}  // namespace mulligan::cuda
