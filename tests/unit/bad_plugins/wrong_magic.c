#define PLUGIN_NAME "wrong_magic"
#define TABLE_MAGIC 0xDEADBEEFu
#include "schedule_table.h"
