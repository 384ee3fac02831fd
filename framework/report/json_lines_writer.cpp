#include "framework/report/json_lines_writer.h"

#include <cerrno>
#include <cstring>

#include "framework/core/error.h"
#include "framework/core/own_file.h"

namespace mulligan {

JsonLinesWriter::JsonLinesWriter(const std::filesystem::path& path, Start start)
    : path_(path), file_(open_own_file(path, start == Start::anew ? FileStart::anew : FileStart::append)) {}

void JsonLinesWriter::write(std::string_view object) {
  const bool written = std::fwrite(object.data(), 1, object.size(), file_.get()) == object.size() &&
                       std::fputc('\n', file_.get()) != EOF && std::fflush(file_.get()) == 0;
  if (!written) throw run_error("the file '{}' cannot be written: {}.", path_.string(), std::strerror(errno));
}

}  // namespace mulligan
