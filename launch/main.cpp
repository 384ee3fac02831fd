// The mulligan program.
#include "launch/command_line.h"

int main(int argc, char** argv) {
  return static_cast<int>(mulligan::run_command_line(argc, argv));
}
