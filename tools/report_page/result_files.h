// Readers of the files that training, quantize, eval and ttt leave in a run directory. Numbers that are
// absent or null are left out or NaN; a file that is no JSON, or whose fields have other types than mulligan
// writes, is a data_error that names it.
#pragma once

#include <filesystem>
#include <vector>

#include "tools/report_page/run_record.h"

namespace mulligan::report {

TrainingResult read_training_result(const std::filesystem::path& path);
LedgerResult read_ledger_result(const std::filesystem::path& path);
QuantizeResult read_quantize_result(const std::filesystem::path& path);
TttRecord read_ttt_result(const std::filesystem::path& path);
// An unfinished last line is left out.
std::vector<EvaluationRecord> read_evaluations(const std::filesystem::path& path);

}  // namespace mulligan::report
