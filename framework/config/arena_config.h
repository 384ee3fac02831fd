// The [arena] section: a benchmark whose rules a run is held to (docs/arena.md).
#pragma once

namespace mulligan {

// modded3: the optimiser benchmark of Modded-NanoGPT, its track 3.
enum class ArenaTrack { none, modded3 };

// [arena]
struct ArenaConfig {
  ArenaTrack track = ArenaTrack::none;
};

struct LoadedConfig;

// Throws config_error where a run of that track would train another model, read other data or in other batches, be
// scored otherwise, or end otherwise than after train.steps. The files themselves: framework/run/arena_track.h.
void check_arena(const LoadedConfig& loaded);

}  // namespace mulligan
