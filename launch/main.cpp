// The mulligan program.
#include "launch/command_line.h"
#include "launch/start_process.h"

int main(int argc, char** argv) {
  return mulligan::run_process([&] { return mulligan::run_command_line(argc, argv); });
}
