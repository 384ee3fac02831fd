// A small checkpoint, and a folder to put it into.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "framework/checkpoint/checkpoint_folder.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sentence.h"

namespace mulligan::test_support {

// A manifest in which every member differs from its default.
inline CheckpointManifest sample_manifest(std::int64_t step) {
  CheckpointManifest m;
  m.step = step;
  m.tokens = 4096 * step;
  m.run = "sample";
  m.commit = "0123abc";
  m.instruction_set = "avx2";
  m.seed = 42;
  m.world_size = 2;
  m.ema_decay = 0.997;
  m.config_sha256 = "c0ffee";
  m.config = "[run]\nname = \"sample\"\n";
  m.plugins = {{"optimizer.matrices", "optimizer", "muon", 3, "abcd"}};
  m.data = {{123, 4, 5, {{4, 5, 60, 7}, {0, 0, 0, 0}}}, 2048};
  m.progress = {.elapsed_seconds = 12.25,
                .step_seconds = 0.1,
                .reported_step = step - 1,
                .reported_at_seconds = 12.0,
                .initial_loss_nats = 9.01,
                .phase = "looped",
                .cycles = {{"matrices", 2}},
                .ledger_seconds = {{"setup", 0.3}, {"train", 12.5}},
                .phase_start = {3, 0.25, 1.5, 0.125},
                .optimizer_start_step = 2,
                .rewarm = {},
                .loss_scale = {4096, 5, 3}};
  m.loss.run = {1.0 / 3.0 * 1e6, 4096, 2.0 / 3.0, 7};
  m.loss.phases = {{"plain", m.loss.run}};
  m.loss.step_first = 1;
  m.loss.step_last = 8;
  m.loss.ring = {3.25, 1.0 / 7.0};
  m.loss.skipped = {6};
  m.loss.steps_skipped = 2;
  return m;
}

// Writes one with two tensors whose values depend on the step.
inline std::filesystem::path write_sample(const std::filesystem::path& directory, std::int64_t step) {
  std::vector<float> weights(64, static_cast<float>(step) + 0.5f);
  std::vector<std::uint16_t> moments(32, static_cast<std::uint16_t>(step));
  return write_checkpoint(directory, sample_manifest(step),
                          {{"master/w", MLG_F32, {8, 8}, std::as_bytes(std::span(weights))},
                           {"optimizer/m", MLG_BF16, {32}, std::as_bytes(std::span(moments))}});
}

}  // namespace mulligan::test_support
