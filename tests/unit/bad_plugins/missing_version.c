#define PLUGIN_NAME "missing_version"
#define TABLE_VERSION NULL
#include "schedule_table.h"
MARKER(mlg_abi_1_schedule_missing_version);
