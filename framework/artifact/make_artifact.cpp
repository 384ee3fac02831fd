#include "framework/artifact/make_artifact.h"

#include <functional>
#include <memory>
#include <utility>

#include "framework/artifact/calibrate.h"
#include "framework/artifact/calibration_rows.h"
#include "framework/artifact/quantize_model.h"
#include "framework/config/config_report.h"
#include "framework/core/file.h"
#include "framework/plugin/quantizer.h"
#include "framework/report/progress.h"

namespace mulligan {
namespace {

// Second moments over all calibration batches. lap(): seconds since its last call.
std::unique_ptr<Calibrator> calibrate(const RunConfig& config, const ArtifactSources& sources,
                                      const std::function<double()>& lap, MadeArtifact& made) {
  TensorStore& store = sources.model.store();
  const QuantizeOptions& options = config.quantize->options;
  const CalibrationShape shape{options.calibration_rows, config.train.sequence_length};
  CalibrationRows rows(calibration_shards(find_shards(training_patterns(config.data), DataSplit::train),
                                          options.calibration_shard_stride),
                       shape.row_tokens, config.model.vocabulary,
                       static_cast<std::uint64_t>(config.run.seed));
  auto calibrator = std::make_unique<Calibrator>(store, config.model, sources.model.layouts(), shape);
  calibrator->rehearse();
  made.setup_seconds = lap();
  const std::int64_t batches = options.calibration_batches;
  Progress progress(sources.progress,
                    {.what = "calibrating", .unit = "batches", .total = static_cast<double>(batches)});
  std::vector<std::int32_t> batch(static_cast<std::size_t>(shape.batch_rows * shape.row_tokens));
  for (std::int64_t i = 0; i < batches; ++i) {
    rows.next(batch);
    calibrator->add(batch);
    progress.advance();
  }
  store.backend().synchronize();
  made.calibrate_seconds = lap();
  return calibrator;
}

}  // namespace

MadeArtifact make_artifact(const LoadedConfig& loaded, const ArtifactSources& sources) {
  const RunConfig& config = loaded.config;
  MadeArtifact made;
  double last = sources.clock();
  const auto lap = [&] {
    const double now = sources.clock();
    return now - std::exchange(last, now);
  };
  std::unique_ptr<Calibrator> calibrator;
  if (sources.quantizer.needs_hessian()) calibrator = calibrate(config, sources, lap, made);
  QuantizeSources quantize;
  quantize.weights = [&](const std::string& parameter) {
    return sources.model.store().download_as<float>(master_name(parameter));
  };
  quantize.moments = [&](const TapPoint& point) { return calibrator->moments(point); };
  quantize.quantizer = &sources.quantizer;
  quantize.threads = static_cast<int>(config.run.threads);
  {
    ProgressPhase phase{.what = "quantising", .unit = "weights"};
    for (const ArtifactPart& part : artifact_parts(config.model))
      phase.total += static_cast<double>(part.type.elements());
    Progress progress(sources.progress, phase);
    quantize.quantized = [&](std::int64_t elements) { progress.advance(static_cast<double>(elements)); };
    made.artifact.tensors = quantize_model(config.model, config.quantize->tensors, quantize);
  }
  made.artifact.configuration = print_for_artifact(loaded);
  made.artifact.evaluation = sources.evaluation;
  made.artifact.data = without_shards(sources.data);
  std::string& tokenizer = made.artifact.data.tokenizer_sha256;
  if (tokenizer.empty() && !config.data.tokenizer.empty()) {
    tokenizer = sha256_hex_of_file(config.data.tokenizer);
  }
  made.quantize_seconds = lap();
  const Progress progress(sources.progress, {.what = "compressing", .ticks = true});
  made.bytes = serialize_artifact(made.artifact, config.quantize->options.compression, &made.sizes,
                                  static_cast<int>(config.run.threads), config.quantize->options.streams);
  made.compress_seconds = lap();
  return made;
}

}  // namespace mulligan
