// Runs as observations of a study, one figure of each by the settings in which they differ, and as runs of the benchmark.
#pragma once

#include <string>
#include <vector>

#include "tools/report_page/run_record.h"
#include "tools/stats/arena_rules.h"
#include "tools/stats/observations.h"

namespace mulligan::report {

// Throws config_error where `runs` are not of one condition: settings other than the seed differ, or two have the same
// seed. Otherwise their spread is not that of chance.
void require_one_condition(const std::vector<RunRecord>& runs);

// The figures of a run that statistics can be made of, as a command line names them, each with what it is. Lower is better in
// all of them.
std::string run_metrics_text();
// The last of val_bpb, quantised_bpb and ttt_bpb that every run has. Throws data_error where there is none.
std::string final_metric(const std::vector<RunRecord>& runs);

// `metric` of every run. A condition is a set of values of the settings `factors`; with none, of all settings
// in which the runs differ, seed, names and places left out, as one factor "configuration". Throws
// config_error for an unknown metric or setting, and data_error for a run that has no such figure.
stats::Observations observe_runs(const std::vector<RunRecord>& runs, const std::string& metric,
                                 const std::vector<std::string>& factors = {});

// The study of the runs' final metric over their conditions, as text for people; a sentence that says why
// where there can be none; empty where no two conditions are there, one of them with runs of several seeds.
std::string study_of_runs(const std::vector<RunRecord>& runs);

// Bytes of text per token of what runs were scored on. Throws data_error where one has none or two differ.
double bytes_per_token(const std::vector<RunRecord>& runs);

// The validation losses of `runs`, the runs of one result of the optimiser benchmark (docs/arena.md, "Results"). Throws Error
// for runs that are not finished, have doubts, differ in more than the seed or were scored on other targets, and where a
// finished run of the same settings in the same folder is left out. `notes` gets a sentence, without full stop, where the
// settings are not those of the benchmark.
std::vector<stats::ArenaRun> arena_runs(const std::vector<RunRecord>& runs, std::vector<std::string>& notes);

}  // namespace mulligan::report
