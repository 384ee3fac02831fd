// A stub of libnvrtc.so.12: the code that it returns is the source with its options.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>

#include "tests/stub/stub.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

struct Program {
  std::string source, expression, code;
};

}  // namespace

EXPORTED int nvrtcVersion(int* major, int* minor) {
  *major = 12;
  *minor = 4;
  return 0;
}
EXPORTED const char* nvrtcGetErrorString(int) {
  return "an error of the stub";
}
EXPORTED int nvrtcCreateProgram(Program** program, const char* source, const char*, int, const char* const*,
                                const char* const*) {
  *program = new Program{source, {}, {}};
  return 0;
}
EXPORTED int nvrtcDestroyProgram(Program** program) {
  delete *program;
  return 0;
}
EXPORTED int nvrtcAddNameExpression(Program* program, const char* expression) {
  program->expression = expression;
  return 0;
}
EXPORTED int nvrtcCompileProgram(Program* program, int count, const char* const* options) {
  {
    static std::mutex mutex;
    static std::condition_variable more;
    std::unique_lock lock(mutex);
    Stub& seen = stub();
    ++seen.compilations;
    seen.most_at_once = std::max(seen.most_at_once, ++seen.under_way);
    more.notify_all();
    more.wait_for(lock, std::chrono::seconds(20), [&] { return seen.most_at_once >= seen.compile_together; });
    --seen.under_way;
  }
  if (program->expression.starts_with("refused")) return 6;  // NVRTC_ERROR_COMPILATION
  program->code = program->expression;
  for (int i = 0; i < count; ++i) program->code += std::string(" ") + options[i];
  program->code += "\n" + program->source;
  return 0;
}
// No mangled name, which tells of no parameters.
EXPORTED int nvrtcGetLoweredName(Program* program, const char*, const char** name) {
  *name = program->expression.c_str();
  return 0;
}
EXPORTED int nvrtcGetCUBINSize(Program* program, std::size_t* bytes) {
  *bytes = program->code.size() + 1;
  return 0;
}
EXPORTED int nvrtcGetCUBIN(Program* program, char* code) {
  std::memcpy(code, program->code.c_str(), program->code.size() + 1);
  return 0;
}
EXPORTED int nvrtcGetProgramLogSize(Program*, std::size_t* bytes) {
  *bytes = 0;
  return 0;
}
EXPORTED int nvrtcGetProgramLog(Program*, char*) {
  return 0;
}
