/* A sound plugin in plain C; built stripped, as distributions do. */
#define PLUGIN_NAME "plain_c"
#include "schedule_table.h"
