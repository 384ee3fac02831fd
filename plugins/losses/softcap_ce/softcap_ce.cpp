// The loss plugin `softcap_ce`: cross entropy that applies the logit softcap itself, in the same pass.
#include <mulligan/loss.hpp>

#include "plugins/losses/softcap_ce/softcap_ce_kernels.h"

namespace mulligan::losses {
namespace {

class SoftcapCe : public sdk::Loss {
 public:
  static constexpr const char* summary = "cross entropy fused with the logit softcap";
  static constexpr bool fuses_softcap = true;
  static constexpr bool forward_backward = true;
  static inline const mlg_kernel kernels[] = {sdk::cpu_kernel<SoftcapCeForward>(),
                                              sdk::cpu_kernel<SoftcapCeBackward>(),
                                              sdk::cpu_kernel<SoftcapCeBoth>(),
                                              softcap_ce_fwd_cuda,
                                              softcap_ce_bwd_cuda,
                                              softcap_ce_fwd_bwd_cuda};

  void record_forward(sdk::Recorder& recorder, sdk::LossForward& forward) override {
    forward.saved[0] = recorder.scratch(recorder.describe(forward.token_loss));  // logsumexp [T]
    recorder.launch(SoftcapCeForward::name,
                    {forward.logits, forward.targets, forward.token_loss, forward.saved[0]},
                    {{"softcap", forward.softcap}});
  }

  void record_backward(sdk::Recorder& recorder, const sdk::LossBackward& backward) override {
    recorder.launch(SoftcapCeBackward::name,
                    {backward.forward.logits, backward.forward.targets, backward.forward.saved[0],
                     backward.upstream, backward.logits_gradient},
                    {{"softcap", backward.forward.softcap}});
  }

  void record_forward_backward(sdk::Recorder& recorder, const sdk::LossBackward& both) override {
    recorder.launch(SoftcapCeBoth::name,
                    {both.forward.logits, both.forward.targets, both.upstream, both.forward.token_loss,
                     both.logits_gradient},
                    {{"softcap", both.forward.softcap}});
  }
};

}  // namespace
}  // namespace mulligan::losses

MULLIGAN_EXPORT_LOSS(mulligan::losses::SoftcapCe, softcap_ce);
