// Input: the description of a file of task vectors (JSON), a line ====, the JSON header of its tensors, a line
// ====, and their data. The tensors' digest is always right: the fuzzer is to get past it. With anything but
// '{' at the start of the header the whole rest is the file as it is.

#include "framework/core/safetensors.h"
#include "lab/task_vectors/task_vectors.h"
#include "lab/task_vectors/task_vectors_file.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/scratch_folder.h"

namespace mulligan::fuzz {
namespace {

namespace tv = ::mulligan::task_vectors;

// A base of zeros for whatever was read.
tv::Model zeros(tv::TaskVectors& vectors) {
  tv::Model base{"base", "base", "digest", {}, vectors.parameters, {}};
  vectors.base_sha256 = base.sha256;
  base.values = [parameters = vectors.parameters](std::size_t index) {
    return std::vector<float>(parameters.at(index).elements());
  };
  return base;
}

}  // namespace

void task_vectors(std::string_view input) {
  static const test_support::ScratchFolder folder;
  const std::string_view description = take_part(input);
  if (input.starts_with('{')) {
    const std::string_view header = take_part(input);
    write_bytes(folder / "tensors.safetensors", safetensors_of(header, input));
    const auto tensors = unless_refused([&] { return SafetensorsFile(folder / "tensors.safetensors"); });
    if (!tensors) return;
    const auto written = unless_refused([&] {
      write_safetensors(folder / "vectors.safetensors", tensors->tensors(),
                        {{"format", tv::file_format},
                         {"task_vectors", std::string(description)},
                         {tensors_sha256_key, tensors_sha256(tensors->tensors())}});
      return true;
    });
    if (!written) return;
  } else {
    write_bytes(folder / "vectors.safetensors", input);
  }
  auto read = unless_refused([&] { return tv::read_task_vectors(folder / "vectors.safetensors"); });
  if (!read) return;
  tv::write_task_vectors(folder / "again.safetensors", *read);
  require(tv::read_task_vectors(folder / "again.safetensors") == *read, "task vectors do not read back");
  if (read->elements() > 1000 || read->tasks.size() > 10) return;
  const tv::Model base = zeros(*read);
  std::vector<tv::Model> models;
  for (std::size_t task = 0; task < read->tasks.size(); ++task)
    models.push_back(tv::unpacked(*read, "fuzz", base, task));
  unless_refused([&] { return tv::merge(base, models, {tv::MergeMethod::ties, 1, 0.5}); });
}

}  // namespace mulligan::fuzz
