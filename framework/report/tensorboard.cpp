#include "framework/report/tensorboard.h"

#include <fmt/format.h>

#include <bit>
#include <boost/crc.hpp>
#include <chrono>
#include <system_error>

#include "framework/core/error.h"

namespace mulligan {
namespace {

template <typename Unsigned>
std::string little_endian(Unsigned value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(value); ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

// Protobuf's wire format: a field is its key, number and wire type, and its value.
enum WireType { varint = 0, fixed64 = 1, length_delimited = 2, fixed32 = 5 };

std::string varint_of(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7f) | 0x80);
  return bytes + static_cast<char>(value);
}

std::string key(int field, WireType type) {
  return varint_of(static_cast<std::uint64_t>(field) << 3 | type);
}

std::string text_field(int field, std::string_view text) {
  return key(field, length_delimited) + varint_of(text.size()) + std::string(text);
}

// Event: wall_time = 1, step = 2, file_version = 3, summary = 5.
std::string event(double wall_time, std::int64_t step, const std::string& what) {
  return key(1, fixed64) + little_endian(std::bit_cast<std::uint64_t>(wall_time)) + key(2, varint) +
         varint_of(static_cast<std::uint64_t>(step)) + what;
}

// Summary.Value: tag = 1, simple_value = 2; Summary: value = 1, repeated.
std::string summary_value(const Scalar& scalar) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(scalar.value));
  return text_field(1, text_field(1, scalar.name) + key(2, fixed32) + little_endian(bits));
}

}  // namespace

std::uint32_t masked_crc32c(std::string_view data) {
  boost::crc_optimal<32, 0x1edc6f41, 0xffffffff, 0xffffffff, true, true> crc;
  crc.process_bytes(data.data(), data.size());
  return std::rotr(static_cast<std::uint32_t>(crc.checksum()), 15) + 0xa282ead8;
}

std::string tensorboard_record(std::string_view data) {
  const std::string length = little_endian(static_cast<std::uint64_t>(data.size()));
  return length + little_endian(masked_crc32c(length)) + std::string(data) +
         little_endian(masked_crc32c(data));
}

std::string tensorboard_events(const std::vector<Scalar>& scalars, double started) {
  return tensorboard_record(event(started, 0, text_field(3, "brain.Event:2"))) +
         tensorboard_records(scalars, started);
}

std::string tensorboard_records(const std::vector<Scalar>& scalars, double started) {
  std::string file;
  for (std::size_t first = 0; first < scalars.size();) {
    const Scalar& head = scalars[first];
    std::string values;
    for (; first < scalars.size() && scalars[first].step == head.step; ++first) {
      values += summary_value(scalars[first]);
    }
    file += tensorboard_record(event(started + head.elapsed_seconds, head.step, text_field(5, values)));
  }
  return file;
}

namespace {

namespace fs = std::filesystem;

// TensorBoard takes files whose names hold this word.
constexpr const char* name_part = "events.out.tfevents.";

void remove_event_files(const fs::path& folder) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().starts_with(name_part)) fs::remove(entry.path(), ignored);
  }
}

}  // namespace

TensorboardFile::TensorboardFile(const fs::path& folder, const MetricsHistory& history) {
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  if (!history.steps.empty()) elapsed_ = history.steps.back().elapsed_seconds;
  started_ = now - elapsed_;
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) throw run_error("the folder '{}' cannot be made: {}.", folder.string(), failed.message());
  remove_event_files(folder);
  file_.emplace(folder / fmt::format("{}{:.0f}.mulligan", name_part, started_), FileStart::anew);
  file_->append(tensorboard_events(scalars_of(history), started_));
}

void TensorboardFile::add(const StepRecord& record) {
  elapsed_ = record.elapsed_seconds;
  MetricsHistory piece;
  piece.steps.push_back(record);
  append(piece);
}

void TensorboardFile::add(const ValidationRecord& record) {
  MetricsHistory piece;
  piece.validations.push_back(record);
  append(piece);
}

void TensorboardFile::append(const MetricsHistory& piece) {
  std::vector<Scalar> scalars = scalars_of(piece);
  for (Scalar& scalar : scalars) scalar.elapsed_seconds = elapsed_;
  file_->append(tensorboard_records(scalars, started_));
}

}  // namespace mulligan
