// A comparison as tables of text cells, the same for the terminal and for a page.
#pragma once

#include <string>
#include <vector>

#include "tools/report_page/comparison.h"
#include "tools/report_page/html.h"

namespace mulligan::report {

struct TextTable {
  std::vector<std::string> head;
  std::vector<std::vector<Cell>> rows;
};

TextTable figures_table(const Comparison& comparison);  // a row per figure, a column per run
TextTable keys_table(const Comparison& comparison);     // a row per key, a column per run
// A row per group and figure: mean, standard deviation, n, seeds.
TextTable seeds_table(const Comparison& comparison);

// Columns padded to their widest cell, two blanks between them; ends with a newline.
std::string plain_text(const TextTable& table);

}  // namespace mulligan::report
