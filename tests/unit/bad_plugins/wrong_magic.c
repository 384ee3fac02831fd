#define PLUGIN_NAME "wrong_magic"
#define TABLE_MAGIC 0xDEADBEEFu
#include "schedule_table.h"
MARKER(mlg_abi_1_schedule_wrong_magic);
