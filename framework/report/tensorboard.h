// TensorBoard event files, which `tensorboard --logdir` draws.
//
// A file is a sequence of records. Each has its length (8 bytes, little-endian), the masked crc32c of those eight bytes, the data, and
// the masked crc32c of the data. The data is a protobuf message tensorflow.Event. Formats:
// tensorflow/core/lib/io/record_writer.h, tensorflow/core/util/event.proto.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/report/json_lines.h"
#include "framework/report/metrics_reader.h"

namespace mulligan {

// CRC-32C (Castagnoli) of `data` in the masked form of records: rotated right by 15 bits, plus 0xa282ead8.
std::uint32_t masked_crc32c(std::string_view data);

// `data` as one record.
std::string tensorboard_record(std::string_view data);

// A whole event file. `started` is the run's beginning in seconds since 1970; an event's wall time is that plus its elapsed seconds.
// Values are rounded to float, the format's type.
std::string tensorboard_events(const std::vector<Scalar>& scalars, double started);
// The same without the file's head, to append to a file.
std::string tensorboard_records(const std::vector<Scalar>& scalars, double started);

// TensorboardFile: an event file that grows during training.
class TensorboardFile {
 public:
  // Makes the folder and in it one event file, which replaces existing ones and begins with `history` (of a continued run). Throws
  // run_error if it cannot be written.
  TensorboardFile(const std::filesystem::path& folder, const MetricsHistory& history);

  void add(const StepRecord& record);
  void add(const ValidationRecord& record);

 private:
  void append(const MetricsHistory& piece);

  std::optional<JsonLinesWriter> file_;
  double started_ = 0;  // seconds since 1970 when the training clock stood at zero
  double elapsed_ = 0;  // of the training clock at the last step
};

}  // namespace mulligan
