// Task vectors on disk. The file is a safetensors file, so other tools can read it.
//
//   codes/mean/PARAMETER, codes/T/PARAMETER   u8 [packed bytes], T = number of the task from 0
//   grids/mean, grids/T                       f64 [parameters, 2]: step and zero by parameter
//   __metadata__: format, task_vectors (a JSON object: bits, base with its sha256, parameters with shapes,
//                 tasks with names, digests and largest errors), tensors_sha256
#pragma once

#include <filesystem>

#include "lab/task_vectors/task_vectors.h"

namespace mulligan::task_vectors {

inline constexpr const char* file_format = "mulligan task vectors 1";

// Whether a file's header declares task vectors. Throws data_error like SafetensorsFile.
bool is_task_vectors(const std::filesystem::path& path);

// Reads a file. Throws data_error that names the file and the fault unless all of it is consistent: digest, lengths of codes, sound
// grids.
TaskVectors read_task_vectors(const std::filesystem::path& path);

// Writes a file atomically and returns its size in bytes. Throws run_error.
std::size_t write_task_vectors(const std::filesystem::path& path, const TaskVectors& vectors);

}  // namespace mulligan::task_vectors
