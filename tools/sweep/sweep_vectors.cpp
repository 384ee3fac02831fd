#include "tools/sweep/sweep_vectors.h"

#include <fmt/format.h>

#include "tools/stats/markdown_table.h"

namespace mulligan {

std::string vectors_table(const std::vector<StoredVectors>& stored) {
  stats::MarkdownTable table({"stored weights", "runs", "bytes", "bytes a run", "of the runs' own files",
                              "largest error of a weight"});
  for (const StoredVectors& one : stored) {
    table.add({one.file.string(), fmt::format("{}", one.runs), fmt::format("{}", one.file_bytes),
               fmt::format("{}", one.file_bytes / one.runs),
               fmt::format("{:.1f} %", 100. * static_cast<double>(one.file_bytes) /
                                           static_cast<double>(one.weights_bytes)),
               fmt::format("{:.3g}", one.largest_error)});
  }
  return table.text() +
         "Quantised differences from init.from, lossy; the runs keep their exact weights, which their scores "
         "are of.\n";
}

}  // namespace mulligan
