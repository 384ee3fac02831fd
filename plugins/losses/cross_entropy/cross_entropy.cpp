// The loss plugin `cross_entropy`: the backend's own kernels; the host applies the
// model's softcap beforehand.
#include <mulligan/loss.hpp>

namespace mulligan::losses {
namespace {

class CrossEntropy : public sdk::Loss {
 public:
  static constexpr const char* summary = "softmax cross entropy";

  void record_forward(sdk::Recorder& recorder, sdk::LossForward& forward) override {
    forward.saved[0] = recorder.scratch(recorder.describe(forward.token_loss));  // logsumexp [T]
    recorder.launch("cross_entropy_fwd",
                    {forward.logits, forward.targets, forward.token_loss, forward.saved[0]});
  }

  void record_backward(sdk::Recorder& recorder, const sdk::LossBackward& backward) override {
    recorder.launch("cross_entropy_bwd",
                    {backward.forward.logits, backward.forward.targets, backward.forward.saved[0],
                     backward.upstream, backward.logits_gradient});
  }
};

}  // namespace
}  // namespace mulligan::losses

MULLIGAN_EXPORT_LOSS(mulligan::losses::CrossEntropy, cross_entropy);
