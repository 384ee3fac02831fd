// Reader and writer of safetensors files: fixtures, checkpoints.
//
// Layout: 8 bytes little-endian header length, a JSON header {name: {dtype, shape, data_offsets}} with an
// optional "__metadata__" object of strings, then the tensors' raw little-endian row-major data.
#pragma once

#include <mulligan/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/tensor_type.h"

namespace mulligan {

// The name that the file has for a dtype ("F32").
std::string_view stored_name(DType type);

// One tensor. `bytes` is a view: into the mapped file when read, into the caller's memory when written.
struct StoredTensor {
  std::string name;
  DType type = MLG_F32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;

  // Number of elements (1 for a scalar).
  std::size_t element_count() const { return bytes.size() / sdk::dtype_bytes(type); }

  // The elements copied out without conversion; T must have the stored width (checked by the caller through
  // `type`). The file does not promise alignment, hence a copy and no typed view.
  template <typename T>
  std::vector<T> copy() const {
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
  }
};

// A file mapped into memory with a checked header; copies share the mapping.
class SafetensorsFile {
 public:
  // Throws data_error (naming the file and what is wrong) unless the header is well-formed JSON without
  // duplicate names, every dtype is known, every shape fits its byte range, and the byte ranges cover the
  // data section exactly, without gap or overlap.
  explicit SafetensorsFile(const std::filesystem::path& path);
  // Makes an object without a file and without tensors.
  SafetensorsFile() = default;

  const std::filesystem::path& path() const { return path_; }
  // In order of position in the file.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // The tensor of that name, or nullptr.
  const StoredTensor* find(std::string_view name) const;
  // The tensor of that name; data_error naming file and tensor when it is absent.
  const StoredTensor& at(std::string_view name) const;

 private:
  std::filesystem::path path_;
  std::shared_ptr<const void> mapping_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, std::size_t, std::less<>> index_;
  std::map<std::string, std::string> metadata_;
};

// sha256 of names, dtypes, shapes and bytes of the tensors, whatever their order. Kept in the metadata of
// weights under tensors_sha256_key.
std::string tensors_sha256(const std::vector<StoredTensor>& tensors);
inline constexpr const char* tensors_sha256_key = "tensors_sha256";

// Writes the tensors atomically (temporary file, sync, rename). Wider elements come first so that every
// tensor is aligned to its element size. Throws run_error when a shape does not match its bytes, a name
// repeats or is reserved, or the disk refuses.
void write_safetensors(const std::filesystem::path& path, const std::vector<StoredTensor>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace mulligan
