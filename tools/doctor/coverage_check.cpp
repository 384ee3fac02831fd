#include <fmt/ranges.h>

#include <algorithm>

#include "tools/doctor/load_checks.h"

namespace mulligan::doctor {
namespace {

// "3 missing (a, b, ...)", or nothing.
void add_list(std::vector<std::string>& parts, const std::vector<std::string>& names, const char* what) {
  if (names.empty()) return;
  const std::size_t shown = std::min<std::size_t>(names.size(), 4);
  parts.push_back(
      fmt::format("{} {} ({}{})", names.size(), what,
                  fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                  shown < names.size() ? ", ..." : ""));
}

}  // namespace

Finding check_coverage(const SafetensorsFile& file, const std::vector<ParameterSpec>& model) {
  std::vector<std::string> missing, shaped, transposed, extra;
  std::size_t filled = 0;
  for (const ParameterSpec& spec : model) {
    const StoredTensor* tensor = file.find(spec.name);
    const std::vector<std::int64_t> shape(spec.type.dims.begin(), spec.type.dims.begin() + spec.type.rank);
    if (!tensor) {
      missing.push_back(spec.name);
    } else if (tensor->shape == shape) {
      ++filled;
    } else if (shape.size() == 2 && tensor->shape == std::vector{shape[1], shape[0]}) {
      transposed.push_back(fmt::format("{} [{}]", spec.name, fmt::join(tensor->shape, ", ")));
    } else {
      shaped.push_back(
          fmt::format("{} [{}] for [{}]", spec.name, fmt::join(tensor->shape, ", "), fmt::join(shape, ", ")));
    }
  }
  bool biases = false;
  for (const StoredTensor& tensor : file.tensors()) {
    if (std::ranges::find(model, tensor.name, &ParameterSpec::name) != model.end()) continue;
    extra.push_back(tensor.name);
    biases = biases || tensor.name.ends_with(".bias");
  }
  std::vector<std::string> parts;
  add_list(parts, missing, "missing");
  add_list(parts, extra, "that the model has not");
  add_list(parts, shaped, "of another shape");
  add_list(parts, transposed, "transposed");
  Finding f = begin_finding("D03", "tensors of the weights file",
                            "any missing, extra, transposed or of another shape fails");
  f.measured = fmt::format("{} of {} parameters filled, {} tensors in the file", filled, model.size(),
                           file.tensors().size());
  f.verdict = parts.empty() ? CheckOutcome::pass : CheckOutcome::fail;
  if (parts.empty()) return f;
  f.message = fmt::format("{}/{} tensors populated: {}{}", filled, model.size(), fmt::join(parts, "; "),
                          biases ? "; bias tensors are present, but the model has no such bias" : "");
  f.hint =
      "make [model] that of the file (mulligan config model FOLDER prints it for config.json), or import the "
      "file with a name map";
  return f;
}

}  // namespace mulligan::doctor
