#define PLUGIN_NAME "wrong_major_in_table"
#define TABLE_MAJOR 9
#include "schedule_table.h"
MARKER(mlg_abi_1_schedule_wrong_major_in_table);
