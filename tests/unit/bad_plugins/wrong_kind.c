#define PLUGIN_NAME "wrong_kind"
#define TABLE_KIND MLG_LOSS
#include "schedule_table.h"
MARKER(mlg_abi_1_schedule_wrong_kind);
