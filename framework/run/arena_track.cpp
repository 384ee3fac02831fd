#include "framework/run/arena_track.h"

#include <fmt/format.h>

#include "framework/core/error.h"

namespace mulligan {
namespace {

constexpr std::uint64_t shard_tokens = 100'000'000;  // of each published file but perhaps the last
constexpr std::size_t published_shards = 103;

void require_shard(const ShardIdentity& shard, const std::string& name, bool last) {
  if (shard.name == name && (shard.tokens == shard_tokens || last)) return;
  throw data_error(
      "the shard '{}' of {} tokens stands where arena.track has '{}' of {}; name the files of kjj0/fineweb10B-gpt2 from "
      "the first one on, or leave out [arena], and the run is none of the benchmark.",
      shard.name, shard.tokens, name, shard_tokens);
}

}  // namespace

void require_arena(const RunConfig& config, const DataIdentity& data, int world_size) {
  if (config.arena.track == ArenaTrack::none) return;
  if (world_size < 1 || 8 % world_size != 0) {
    throw config_error(
        "a run of arena.track has 1, 2, 4 or 8 ranks, not {}; start as many, or leave out [arena], and the run is none of "
        "the benchmark.",
        world_size);
  }
  for (std::size_t i = 0; i < data.train.shards.size(); ++i)
    require_shard(data.train.shards[i], fmt::format("fineweb_train_{:06}.bin", i + 1),
                  i + 1 == published_shards);
  if (data.validation.shards.size() != 1) {
    throw data_error(
        "{} validation shards are named where arena.track scores fineweb_val_000000.bin; name that one, or leave out "
        "[arena], and the run is none of the benchmark.",
        data.validation.shards.size());
  }
  require_shard(data.validation.shards.front(), "fineweb_val_000000.bin", false);
}

}  // namespace mulligan
