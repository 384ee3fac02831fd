#define PLUGIN_NAME "short_table"
#define TABLE_SIZE sizeof(mlg_plugin_header)
#include "schedule_table.h"
