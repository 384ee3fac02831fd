// Text transforms of `mulligan prepare`: an invertible change of a document before it is tokenised.
//
// Scores stay those of the original text: each token counts the original bytes that it stands for
// (transformed_encoding.h, side_table.h). A transform is a class here and a line in text_transform.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mulligan {

class TextTransform {
 public:
  virtual ~TextTransform() = default;

  virtual std::string_view name() const = 0;  // "caseops": the word of --text-transform and of manifests
  // What the published data sets call this very mapping.
  virtual std::string_view published_name() const = 0;
  // Symbols that it writes into text: a tokenizer trained for it has each as a piece of its own.
  virtual std::vector<std::string> symbols() const = 0;

  virtual std::string apply(std::string_view text) const = 0;
  // The original of what apply() gave. Throws data_error for what it cannot have given. Text that ends with a space or a line's
  // end can be undone apart from what follows.
  virtual std::string undo(std::string_view transformed) const = 0;
  // Original bytes behind each of the slices of one transformed text, in their order. Slices may leave out
  // parts of the text (white space at its ends), which then count nowhere.
  virtual std::vector<std::uint64_t> original_bytes(std::span<const std::string> slices) const = 0;
};

// The transform of that name. Throws config_error that lists the names.
const TextTransform& text_transform(std::string_view name);
std::vector<const TextTransform*> text_transforms();

}  // namespace mulligan
