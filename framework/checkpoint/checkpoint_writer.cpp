#include "framework/checkpoint/checkpoint_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <system_error>

#include "framework/core/error.h"

namespace mulligan {

std::vector<std::byte> download_bytes(const TensorStore& store, std::string_view name) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(store.type(name).bytes()));
  store.download(name, bytes);
  return bytes;
}

std::vector<std::byte> StateTensor::read(const TensorStore& store) const {
  if (!host) return download_bytes(store, source);
  if (static_cast<std::int64_t>(host->bytes.size()) != host->type.bytes()) {
    throw std::logic_error("'" + name + "' was not gathered on this rank");
  }
  return host->bytes;
}

void StateTensor::write(TensorStore& store, std::span<const std::byte> bytes) const {
  if (!host) return store.upload(source, bytes);
  if (static_cast<std::int64_t>(bytes.size()) != host->type.bytes()) {
    throw std::logic_error(
        fmt::format("{} bytes for '{}', which is {}", bytes.size(), name, host->type.text()));
  }
  host->bytes.assign(bytes.begin(), bytes.end());
}

std::vector<std::int64_t> stored_shape(const TensorType& type) {
  return {type.dims.begin(), type.dims.begin() + type.rank};
}

CheckpointWriter::~CheckpointWriter() {
  if (writing_.valid()) writing_.wait();
}

bool CheckpointWriter::busy() const {
  return writing_.valid() && writing_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

std::vector<StoredTensor> CheckpointWriter::copy_to_host(const TensorStore& store,
                                                         const std::vector<StateTensor>& tensors) {
  host_.resize(tensors.size());
  std::vector<StoredTensor> copies;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorType& type = tensors[i].type(store);
    std::vector<std::byte>& bytes = tensors[i].host ? tensors[i].host->bytes : host_[i];
    if (!tensors[i].host) {
      bytes.resize(static_cast<std::size_t>(type.bytes()));
      store.download(tensors[i].source, std::span(bytes));
    }
    if (static_cast<std::int64_t>(bytes.size()) != type.bytes()) {
      throw std::logic_error("the state has '" + tensors[i].name + "' in slices: it was not gathered");
    }
    copies.push_back({tensors[i].name, type.dtype, stored_shape(type), bytes});
  }
  return copies;
}

void CheckpointWriter::begin(CheckpointManifest manifest, const TensorStore& store,
                             const std::vector<StateTensor>& tensors) {
  if (writing_.valid()) throw std::logic_error("a checkpoint is still being written or was not asked for");
  auto write = [this, manifest = std::move(manifest), copies = copy_to_host(store, tensors),
                tensors]() mutable {
    std::filesystem::path path = write_checkpoint(directory_, std::move(manifest), copies);
    keep_newest_checkpoints(directory_, keep_);
    return path;
  };
  const auto task = std::make_shared<decltype(write)>(std::move(write));
  try {
    writing_ = std::async(std::launch::async, [task] {
      // Training has the CPUs first: hashing and writing take what it leaves.
      constexpr int niceness = 10;
      setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), niceness);
      return (*task)();
    });
  } catch (const std::system_error&) {  // the system refuses a thread: training waits, and nothing is lost
    writing_ = std::async(std::launch::deferred, [task] { return (*task)(); });
    writing_.wait();
  }
}

std::optional<std::filesystem::path> CheckpointWriter::completed() {
  return busy() ? std::nullopt : finish();
}

std::optional<std::filesystem::path> CheckpointWriter::finish() {
  if (!writing_.valid()) return {};
  return writing_.get();
}

void restore_tensors(const Checkpoint& checkpoint, TensorStore& store,
                     const std::vector<StateTensor>& tensors) {
  const auto other_run = [&](const std::string& what) {
    return data_error("the checkpoint '{}' {}; resume with the configuration of the saved run.",
                      checkpoint.path.string(), what);
  };
  for (const StoredTensor& tensor : checkpoint.tensors.tensors()) {
    if (std::ranges::find(tensors, tensor.name, &StateTensor::name) == tensors.end()) {
      throw other_run(
          fmt::format("holds the tensor '{}', which the configured run does not have", tensor.name));
    }
  }
  for (const StateTensor& wanted : tensors) {
    const StoredTensor* tensor = checkpoint.tensors.find(wanted.name);
    if (!tensor)
      throw other_run(fmt::format("does not hold the tensor '{}' of the configured run", wanted.name));
    const TensorType& type = wanted.type(store);
    if (tensor->type != type.dtype || tensor->shape != stored_shape(type)) {
      throw other_run(fmt::format("holds '{}' as {} [{}], but the configured run has {}", wanted.name,
                                  stored_name(tensor->type), fmt::join(tensor->shape, ", "), type.text()));
    }
  }
  for (const StateTensor& wanted : tensors) wanted.write(store, checkpoint.tensors.at(wanted.name).bytes);
}

}  // namespace mulligan
