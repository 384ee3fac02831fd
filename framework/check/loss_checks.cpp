// Checks of loss plugins.

#include "framework/check/kind_checks.h"
#include "framework/check/loss_probe.h"
#include "framework/check/poisoned_run.h"

namespace mulligan {
namespace {

// Extents that no vector width divides.
constexpr LossShape odd_shapes[] = {{5, 7, 3}, {1, 2, 1}, {3, 33, 5}};
// Enough for several threads, and still odd.
constexpr LossShape wide_shape{67, 1201, 19};

std::vector<double> softcaps(const Loss& loss) {
  return loss.fuses_softcap() ? std::vector<double>{0, 15} : std::vector<double>{0};
}

std::string gradient_problem(Backend& backend, const Loss& loss, bool of_hidden) {
  for (LossShape shape : odd_shapes) {
    for (const double softcap : softcaps(loss)) {
      shape.softcap = softcap;
      LossProbe probe(backend, loss, shape, false);
      LossInputs inputs = sample_loss_inputs(shape);
      probe.set(inputs);
      const LossOutputs at = probe.run();
      std::vector<float>& varied = of_hidden ? inputs.hidden : inputs.logits;
      const std::vector<float> start = varied;
      const auto objective = [&](const std::vector<float>& values) {
        varied = values;
        probe.set(inputs);
        return weighed_sum(inputs.upstream, probe.run().token_loss);
      };
      const std::string problem =
          compare_with_differences(fmt::format("{} at {} tokens, vocabulary {}, softcap {}",
                                               of_hidden ? "the hidden state's gradient" : "logits_gradient",
                                               shape.tokens, shape.vocabulary, softcap),
                                   start, of_hidden ? at.hidden_gradient : at.logits_gradient, objective);
      if (!problem.empty()) return problem;
    }
  }
  return {};
}

std::string negative_target_problem(Backend& backend, const Loss& loss) {
  const LossShape shape = odd_shapes[0];
  LossProbe probe(backend, loss, shape, false);
  probe.set(sample_loss_inputs(shape));
  const LossOutputs outputs = probe.run();
  if (outputs.token_loss[2] != 0) {
    return fmt::format("token_loss of a negative target is {}, but must be 0", outputs.token_loss[2]);
  }
  for (std::int64_t i = 0; i < shape.vocabulary; ++i) {
    const float value = outputs.logits_gradient[static_cast<std::size_t>(2 * shape.vocabulary + i)];
    if (value != 0) return fmt::format("logits_gradient of a negative target is {}, but must be 0", value);
  }
  return {};
}

std::string in_place_problem(Backend& backend, const Loss& loss) {
  for (const LossShape& shape : {odd_shapes[0], wide_shape}) {
    LossProbe apart(backend, loss, shape, false), together(backend, loss, shape, true);
    const LossInputs inputs = sample_loss_inputs(shape);
    apart.set(inputs);
    together.set(inputs);
    const std::string problem =
        first_difference("logits_gradient", apart.run().logits_gradient, together.run().logits_gradient);
    if (!problem.empty()) return problem + ", in memory of its own and in that of the logits";
  }
  return {};
}

// Both passes in one against the two apart, in memory of its own and in that of the logits.
std::string in_one_problem(Backend& backend, const Loss& loss, DType dtype) {
  for (LossShape shape : {odd_shapes[0], odd_shapes[1], wide_shape}) {
    shape.dtype = dtype;
    shape.softcap = softcaps(loss).back();
    if (std::string problem = loss_outputs_problem(backend, loss, shape, LossPasses::in_one);
        !problem.empty())
      return problem;
    LossProbe apart(backend, loss, shape, false), in_one(backend, loss, shape, false, LossPasses::in_one),
        in_place(backend, loss, shape, true, LossPasses::in_one);
    const LossInputs inputs = sample_loss_inputs(shape);
    for (LossProbe* probe : {&apart, &in_one, &in_place}) probe->set(inputs);
    const LossOutputs expected = apart.run(), found = in_one.run();
    const double tolerance = dtype == MLG_F32 ? 1e-5 : 1e-2;
    std::string problem = first_distance("token_loss", expected.token_loss, found.token_loss, tolerance);
    if (problem.empty()) {
      problem = first_distance("logits_gradient", expected.logits_gradient, found.logits_gradient, tolerance);
    }
    if (!problem.empty()) return problem + ", apart and in one";
    problem = first_difference("logits_gradient", found.logits_gradient, in_place.run().logits_gradient);
    if (!problem.empty()) return problem + ", in memory of its own and in that of the logits";
  }
  return {};
}

std::string value_problem(Backend& backend, const Loss& loss) {
  for (const int vocabulary : {7, 1201}) {
    for (const double softcap : softcaps(loss)) {
      std::string problem = loss_value_problem(loss_values(backend, loss, vocabulary, softcap, MLG_F32),
                                               loss.is_cross_entropy(), vocabulary, MLG_F32);
      if (!problem.empty()) return problem;
    }
  }
  return {};
}

std::string repetition_problem(Backend& one, Backend& other, const Loss& loss) {
  const LossInputs inputs = sample_loss_inputs(wide_shape);
  LossProbe a(one, loss, wide_shape, false), b(other, loss, wide_shape, false);
  a.set(inputs);
  b.set(inputs);
  return first_difference(a.run().named(), b.run().named());
}

}  // namespace

void check_loss(const PluginHandle& plugin, const PluginConfig& config, const BackendMaker& make,
                CheckList& list) {
  const Loss loss(plugin, config);
  const std::unique_ptr<Backend> backend = make(1);
  for (const DType dtype : {MLG_F32, MLG_BF16}) {
    list.add(
        fmt::format("every output is written, whatever memory held before ({})", dtype_name(dtype)), [&] {
          return first_problem(std::array{odd_shapes[0], odd_shapes[1], wide_shape}, [&](LossShape shape) {
            shape.dtype = dtype;
            return loss_outputs_problem(*backend, loss, shape);
          });
        });
  }
  list.add("the gradient of the logits equals finite differences",
           [&] { return gradient_problem(*backend, loss, false); });
  if (loss.reads_hidden()) {
    list.add("the gradient of the hidden state equals finite differences",
             [&] { return gradient_problem(*backend, loss, true); });
  }
  list.add(loss.is_cross_entropy() ? "it is a cross entropy in nats, perhaps with a further term"
                                   : "it falls as the target becomes more likely",
           [&] { return value_problem(*backend, loss); });
  list.add("a negative target gives neither loss nor gradient",
           [&] { return negative_target_problem(*backend, loss); });
  list.add("the gradient may take the memory of the logits",
           [&] { return in_place_problem(*backend, loss); });
  if (loss.has_forward_backward()) {
    for (const DType dtype : {MLG_F32, MLG_BF16}) {
      list.add(fmt::format("forward and backward in one are those of the two apart ({})", dtype_name(dtype)),
               [&] { return in_one_problem(*backend, loss, dtype); });
    }
  }
  if (!make.is_cpu) {
    list.add("a second run gives the same bits",
             [&] { return repetition_problem(*backend, *backend, loss); });
    return;
  }
  add_thread_check(list, make, [&](Backend& other) { return repetition_problem(*backend, other, loss); });
  list.add("no allocation on the step path", [&] {
    LossProbe probe(*backend, loss, wide_shape, false);
    probe.set(sample_loss_inputs(wide_shape));
    probe.run();
    return kernel_allocation_problem([&] { probe.memory().run_calls_only(); });
  });
}

}  // namespace mulligan
