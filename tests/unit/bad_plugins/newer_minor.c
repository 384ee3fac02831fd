#define PLUGIN_NAME "newer_minor"
#define TABLE_MINOR (MLG_ABI_MINOR + 1)
#include "schedule_table.h"
