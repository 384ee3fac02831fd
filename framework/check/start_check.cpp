#include "framework/check/start_check.h"

#include "framework/check/adapter_probe.h"
#include "framework/check/loss_probe.h"
#include "framework/core/error.h"

namespace mulligan {
namespace {

template <typename Instance>
void refuse(const Instance& instance, const std::string& problem) {
  if (problem.empty()) return;
  throw config_error(
      "[{}]: {} fails the check run before the start: {}; `mulligan plugins check {}` says more.",
      instance.section(), instance.plugin().description(), problem, instance.plugin().name());
}

}  // namespace

void check_loss_at_start(Backend& backend, const Loss& loss, const ModelConfig& model, DType compute) {
  if (!backend.info().computes) return;
  constexpr std::int64_t tokens = 8;
  refuse(loss, loss_outputs_problem(backend, loss,
                                    {tokens, model.vocabulary, model.width, compute, model.softcap}));
}

void check_adapters_at_start(Backend& backend, const TttPlugin& plugin, const ModelConfig& model) {
  if (!backend.info().computes || !plugin.has_adapters()) return;
  const std::int64_t width = model.width, heads = model.heads * model.head_width,
                     kv_heads = model.kv_heads * model.head_width;
  constexpr std::int64_t documents = 2, tokens = 4;
  for (const auto& [kind, outputs] :
       {std::pair{TapKind::q, heads}, std::pair{TapKind::k, kv_heads}, std::pair{TapKind::v, kv_heads},
        std::pair{TapKind::attention_output, width}, std::pair{TapKind::mlp_up, model.mlp_hidden},
        std::pair{TapKind::mlp_down, width}, std::pair{TapKind::head, model.vocabulary}}) {
    refuse(plugin, adapter_outputs_problem(backend, plugin, {kind, documents, tokens, width, outputs}));
  }
}

}  // namespace mulligan
