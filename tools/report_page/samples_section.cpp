// Texts that the run's weights wrote.
#include <fmt/format.h>

#include <algorithm>

#include "tools/report_page/html.h"
#include "tools/report_page/run_sections.h"

namespace mulligan::report {

std::string samples_section(const RunRecord& run) {
  constexpr std::size_t shown = 8;
  if (run.samples.empty()) return {};
  std::string html;
  const std::size_t first = run.samples.size() - std::min(shown, run.samples.size());
  if (first > 0)
    html += note(fmt::format("The last {} of {} that samples.jsonl holds.", shown, run.samples.size()));
  for (std::size_t i = run.samples.size(); i-- > first;) {
    const TextSample& sample = run.samples[i];
    html += fmt::format("<blockquote><b>{}</b>{}</blockquote>\n", escape(sample.prompt), escape(sample.text));
    html += note(fmt::format("{} tokens by {}, temperature {:g}, seed {}", sample.tokens, sample.weights,
                             sample.temperature, sample.seed));
  }
  return section("samples", "Samples", html);
}

}  // namespace mulligan::report
