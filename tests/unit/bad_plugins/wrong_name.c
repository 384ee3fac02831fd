#define PLUGIN_NAME "another"
#include "schedule_table.h"
MARKER(mlg_abi_1_schedule_wrong_name);
