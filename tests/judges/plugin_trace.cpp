// Runs an optimiser, a schedule or a quantiser of this build, for the judges torch_optim and gptq.
//
//   mulligan_plugin_trace optimizer NAME KEYS IN OUT     IN (safetensors): "initial" f32 [rows, columns], "gradients" f32
//                                                           [steps, rows, columns], "lr" f64 [steps]; OUT: "weights" as gradients
//   mulligan_plugin_trace schedule NAME KEYS STEPS LR    prints the rate of each step
//   mulligan_plugin_trace quantizer NAME KEYS IN OUT     IN: "weight" f32 [rows, columns], "hessian" f32 [columns, columns],
//                                                        "grid" f64 [2], bits and clip_sigmas; OUT: "codes" i8, "scales" f32
#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <string>

#include "framework/core/safetensors.h"
#include "framework/plugin/quantizer.h"
#include "framework/plugin/schedule.h"
#include "tests/support/plugin_runner.h"

namespace mulligan {
namespace {

void trace_optimizer(const std::string& name, const std::string& keys, const std::string& in,
                     const std::string& out) {
  const SafetensorsFile file(in);
  const StoredTensor& initial = file.at("initial");
  const auto gradients = file.at("gradients").copy<float>();
  const auto rates = file.at("lr").copy<double>();
  const std::size_t size = initial.element_count();
  plugin_test::OptimizerRunner runner(
      name, keys,
      {{"w", TensorType(MLG_F32, {initial.shape.at(0), initial.shape.at(1)}), initial.copy<float>()}});
  std::vector<float> weights;
  for (std::size_t step = 0; step < rates.size(); ++step) {
    const auto begin = gradients.begin() + static_cast<std::ptrdiff_t>(step * size);
    runner.step({{"w", {begin, begin + static_cast<std::ptrdiff_t>(size)}}}, rates[step]);
    const std::vector<float> now = runner.master("w");
    weights.insert(weights.end(), now.begin(), now.end());
  }
  write_safetensors(out,
                    {{"weights", MLG_F32, file.at("gradients").shape, std::as_bytes(std::span(weights))}});
}

void trace_schedule(const std::string& name, const std::string& keys, std::int64_t steps, double lr) {
  const auto schedule = make_plugin<Schedule>(MLG_SCHEDULE, name, keys);
  for (std::int64_t step = 0; step < steps; ++step) {
    mlg_progress progress{};
    progress.step = step;
    progress.total_steps = steps;
    fmt::print("{:.17g}\n", schedule->rate(progress, lr).lr);
  }
}

void trace_quantizer(const std::string& name, const std::string& keys, const std::string& in,
                     const std::string& out) {
  const SafetensorsFile file(in);
  const auto weight = file.at("weight").copy<float>(), hessian = file.at("hessian").copy<float>();
  const auto grid = file.at("grid").copy<double>();
  const std::vector<std::int64_t> shape = file.at("weight").shape;
  mlg_quantize_request request{};
  request.name = "judged";
  request.weight = weight.data();
  request.hessian = hessian.data();
  request.rows = shape.at(0);
  request.columns = shape.at(1);
  request.bits = static_cast<std::int32_t>(grid.at(0));
  request.clip_sigmas = grid.at(1);
  request.parallel_for = [](std::int64_t count, std::int64_t, void (*body)(void*, std::int64_t, std::int64_t),
                            void* context) { body(context, 0, count); };
  std::vector<std::int8_t> codes(weight.size());
  std::vector<float> scales(static_cast<std::size_t>(shape[0]));
  mlg_quantize_result result{};
  result.codes = codes.data();
  result.scales = scales.data();
  make_plugin<Quantizer>(MLG_QUANTIZER, name, keys)->quantize(request, result);
  write_safetensors(out, {{"codes", MLG_I8, shape, std::as_bytes(std::span(codes))},
                          {"scales", MLG_F32, {shape[0]}, std::as_bytes(std::span(scales))}});
}

}  // namespace
}  // namespace mulligan

int main(int argc, char** argv) {
  try {
    if (argc != 6) throw std::invalid_argument("five words are needed; the file says which");
    const std::string kind = argv[1];
    if (kind == "optimizer") mulligan::trace_optimizer(argv[2], argv[3], argv[4], argv[5]);
    if (kind == "schedule")
      mulligan::trace_schedule(argv[2], argv[3], std::atoll(argv[4]), std::atof(argv[5]));
    if (kind == "quantizer") mulligan::trace_quantizer(argv[2], argv[3], argv[4], argv[5]);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "mulligan_plugin_trace: {}\n", error.what());
    return 1;
  }
}
