#define PLUGIN_NAME "two_markers"
#include "schedule_table.h"
MARKER(mlg_abi_1_schedule_two_markers);
MARKER(mlg_abi_1_loss_two_markers);
