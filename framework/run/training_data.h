// The training shards of a run, opened and held against its validation set.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/data/loader.h"
#include "framework/data/text_overlap.h"
#include "framework/eval/evaluate.h"

namespace mulligan {

struct TrainingData {
  std::vector<std::filesystem::path> shards;  // in reading order
  std::vector<FileStamp> stamps;              // of the shards, when their digests were taken
  std::vector<LoaderPart> parts;              // of [[data.mix]]; empty without
  int bos_id = 1;
  DataIdentity data;               // of training and, where there is any, validation
  std::vector<std::string> notes;  // for the log: padded vocabulary
};

// Finds and checks (check_shards) what data.train or [[data.mix]] names. Throws data_error also where a shard
// is in the validation set, too, or in two parts of the mix. `validation` may be null.
TrainingData open_training_data(const RunConfig& config, const ValidationSet* validation);

// Where [ttt] adapts to documents: throws data_error unless documents begin in the training shards and in
// those of `validation` (null: there are none).
void require_documents(const RunConfig& config, const TrainingData& data, const ValidationSet* validation);

// The shards' names and where documents begin, and no more: what a measurement needs, which has not
// read the shards.
TrainingData unchecked_training_data(const RunConfig& config);

// How a rank of `world_size` reads rows of one micro-batch, in the first phase.
LoaderOptions loader_options(const RunConfig& config, const TrainingData& data, int rank, int world_size);

class HostGroup;
class RunLog;

// The overlap of the shards with the validation text (find_text_overlap), by all ranks of `group` together. Logs it, and
// warns where it exceeds its limits or the text cannot be judged. Throws data_error for an excess under strict rules.
TextOverlap overlap_with_validation(const RunConfig& config, const std::vector<std::filesystem::path>& shards,
                                    const ValidationSet& validation, HostGroup& group, RunLog& log);

// Throws Error where a run with arena.track does not read the benchmark's files by their names, in their order and of
// their lengths, or where `world_size` ranks do not divide 8. Whether the tokens in them are the published ones is not
// known here: result.json has their digests.
void require_arena(const RunConfig& config, const DataIdentity& data, int world_size);

// Throws config_error where a schedule of a run with arena.track asks for `batch_factor` times the batch, not 1: which
// schedules do is known only while they run.
void require_arena_batch(const RunConfig& config, double batch_factor);

}  // namespace mulligan
