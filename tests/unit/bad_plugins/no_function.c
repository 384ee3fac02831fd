__attribute__((visibility("default"))) const char mlg_abi_1_schedule_no_function = 1;
