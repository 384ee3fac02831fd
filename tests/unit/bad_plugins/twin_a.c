#define PLUGIN_NAME "twin"
#include "schedule_table.h"
MARKER(mlg_abi_1_schedule_twin);
