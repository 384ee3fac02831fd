// The curves of one run, as points and as whole charts.
#pragma once

#include <optional>
#include <vector>

#include "tools/report_page/chart.h"
#include "tools/report_page/run_record.h"

namespace mulligan::report {

// One point per reported step; by step, or with `by_seconds` by the training clock.
std::vector<Point> curve_of(const RunRecord& run, double StepRecord::*value, bool by_seconds = false);
std::vector<Point> validation_bpb(const RunRecord& run);
// Whether the training loss is cross entropy in nats: of the project's own losses it is, of others unknown.
bool trains_cross_entropy(const RunRecord& run);
// Bits per byte that one nat per token makes on the validation text; absent before it was scored, and where
// the training loss may be no cross entropy.
std::optional<double> bpb_of_nats(const RunRecord& run);
// Running score of test-time training after each batch, counted from 1.
std::vector<Point> running_ttt_score(const ResultValue& ttt, bool with);
// "bits per byte", or "nats per token" where bytes were not counted.
const char* score_unit(const ResultValue& ttt);

LineChart loss_chart(const RunRecord& run);
LineChart bpb_chart(const RunRecord& run);
LineChart learning_rate_chart(const RunRecord& run);
LineChart gradient_norm_chart(const RunRecord& run);
LineChart step_time_chart(const RunRecord& run);
LineChart ttt_score_chart(const ResultValue& ttt);
LineChart ttt_drift_chart(const ResultValue& ttt);

}  // namespace mulligan::report
