// TrainingRows: the text that a run is trained on, as rows of its present phase.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/data/prefetcher.h"
#include "framework/run/training_data.h"

namespace mulligan {

class TrainingRows {
 public:
  // `config` must outlive this object. Reads nothing.
  TrainingRows(const RunConfig& config, int rank, int world_size)
      : config_(config), rank_(rank), world_size_(world_size) {}

  // Finds and checks the shards (open_training_data); `validation` may be null. Throws Error.
  void open(const ValidationSet* validation) { data_ = open_training_data(config_, validation); }
  // Rows as the phase reads them from now on; the stream goes on where it stands. Where the mix changes, its
  // ratio is that of the new weights from here on.
  void read_as(const Phase& phase);
  // Under strict rules: what was read is what was looked at. Throws run_error where a file that the loader opened
  // is not the one whose digest and overlap were taken, or was written to since: a time of change cannot be set back.
  void require_unwritten() const;

  // Throws data_error where a text in stream order, which is read once, ends before train.steps do.
  void require_enough() const;

  const TrainingData& data() const { return data_; }
  Prefetcher& stream() { return *stream_; }  // after the first read_as()
  const Prefetcher& stream() const { return *stream_; }
  double epochs() const;  // passes over the text so far
  // Of the rows read so far, by row of [[data.mix]].
  std::vector<std::pair<std::string, double>> mix_shares() const;

 private:
  const RunConfig& config_;
  int rank_, world_size_;
  TrainingData data_;
  std::unique_ptr<Prefetcher> stream_;
};

}  // namespace mulligan
