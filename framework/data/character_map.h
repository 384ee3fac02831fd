// The compiled character map that a SentencePiece model may carry: how it changes characters before it
// cuts a text.
#pragma once

#include <string>
#include <string_view>

namespace mulligan {

// What keeps SentencePiece from reading beyond the maps of a serialised model, in words, or "" where nothing
// does: it follows a map's places and texts without looking whether they exist, so that a damaged model, or a
// stranger's, would read (and perhaps reveal) memory that is not its own, or end the process.
std::string character_map_problem(std::string_view model);

}  // namespace mulligan
