#define PLUGIN_NAME "missing_member"
#define TABLE_RATE NULL
#include "schedule_table.h"
MARKER(mlg_abi_1_schedule_missing_member);
