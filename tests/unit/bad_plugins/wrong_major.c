/* Built for ABI 9. Its code ends the process: the host must refuse it without running any of it. */
#include <stdlib.h>
#define PLUGIN_NAME "wrong_major"
#include "schedule_table.h"
MARKER(mlg_abi_9_schedule_wrong_major);
__attribute__((constructor)) static void end_the_process(void) {
  abort();
}
