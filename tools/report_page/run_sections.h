// The sections of a run's report, and its curves as points and as whole charts.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/report_page/chart.h"
#include "tools/report_page/html.h"
#include "tools/report_page/run_record.h"

namespace mulligan::report {

struct RunSection {
  const char* id;
  const char* title;
  // HTML below the title; "" where the run has nothing for it.
  std::string (*body)(const RunRecord& run);
};
// In the order of the page.
std::span<const RunSection> run_sections();

// The sections of score_sections.cpp.
std::string scores(const RunRecord& run);
std::string samples(const RunRecord& run);
std::string artifact(const RunRecord& run);
std::string ttt_section(const RunRecord& run);
std::string calibration(const RunRecord& run);
std::string ensemble(const RunRecord& run);

// The figures of calibration.json and of ensemble.json, which mulligan probe prints, too.
Table calibration_table(const ResultValue& result);
Table ensemble_table(const ResultValue& result);

// What speaks against a run (RunRecord::doubts), as warnings.
std::string doubts_html(const RunRecord& run);
// "attention plans 22 + 0 + 1, ...": made before the clock, on it and after it. "" if nothing is counted.
std::string made_text(const ResultValue& result);
// "bits per byte", or "nats per token" where bytes were not counted.
const char* score_unit(const ResultValue& ttt);

// One point per reported step; by step, or with `by_seconds` by the training clock.
std::vector<Point> curve_of(const RunRecord& run, double StepRecord::*value, bool by_seconds = false);
std::vector<Point> validation_bpb(const RunRecord& run);
// Bits per byte that one nat per token makes on the validation text; absent before it was scored, and where
// the training loss may be no cross entropy.
std::optional<double> bpb_of_nats(const RunRecord& run);
// Running score of test-time training after each batch, counted from 1.
std::vector<Point> running_ttt_score(const ResultValue& ttt, bool with);

LineChart loss_chart(const RunRecord& run);
LineChart bpb_chart(const RunRecord& run);
// All charts of a run's training, drawn.
std::string training_charts(const RunRecord& run);
std::string ttt_charts(const ResultValue& ttt);

}  // namespace mulligan::report
