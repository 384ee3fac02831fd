/* A sound plugin that, while it is being loaded, puts another library (MULLIGAN_TEST_REPLACEMENT) in its own place. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#define PLUGIN_NAME "replacing"
#include "schedule_table.h"
MARKER(mlg_abi_1_schedule_replacing);

__attribute__((constructor)) static void replace(void) {
  const char* other = getenv("MULLIGAN_TEST_REPLACEMENT");
  Dl_info own;
  if (other != NULL && dladdr((const void*)&table, &own) != 0) rename(other, own.dli_fname);
}
