/* A library that leaves a mark when it is loaded: a line in the file that MULLIGAN_MARK names. It is no
 * usable plugin; whether its code runs is all that is asked (foreign_code.sh). */
#include <mulligan/abi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((visibility("default"))) const mlg_plugin_header* mlg_plugin(void) {
  return NULL;
}

__attribute__((constructor)) static void leave_a_mark(void) {
  const char* path = getenv("MULLIGAN_MARK");
  FILE* file = path == NULL ? NULL : fopen(path, "a");
  if (file == NULL) return;
  fputs("loaded\n", file);
  fclose(file);
}
