// The layout of plugin ABI 1.0. A line that stops compiling means: plugins built before the change would read the
// wrong member. Tables (…_table, and structs that only the host allocates) may grow at their end, which changes
// their SIZE line and raises MLG_ABI_MINOR; anything else needs a new MLG_ABI_MAJOR. Arrays of
// mlg_key, mlg_kernel, mlg_tensor, mlg_attribute and mlg_parameter cross the boundary, so these structs never
// change size within a major.
#include <gtest/gtest.h>
#include <mulligan/backend.h>
#include <mulligan/communicator.h>
#include <mulligan/ensemble.h>
#include <mulligan/loss.h>
#include <mulligan/optimizer.h>
#include <mulligan/quantizer.h>
#include <mulligan/schedule.h>
#include <mulligan/transform.h>
#include <mulligan/ttt.h>
#include <mulligan/wrapper.h>

#include <cstddef>

#include "tests/support/plugins.h"

#define LAYOUT(type, member, offset) \
  static_assert(offsetof(type, member) == offset, #type "." #member " has moved")
#define SIZE(type, bytes) static_assert(sizeof(type) == bytes, #type " has changed its size")

LAYOUT(mlg_plugin_header, magic, 0);
LAYOUT(mlg_plugin_header, abi_major, 4);
LAYOUT(mlg_plugin_header, abi_minor, 6);
LAYOUT(mlg_plugin_header, struct_size, 8);
LAYOUT(mlg_plugin_header, kind, 12);
LAYOUT(mlg_plugin_header, name, 16);
LAYOUT(mlg_plugin_header, version, 24);
LAYOUT(mlg_plugin_header, summary, 32);
LAYOUT(mlg_plugin_header, state_version, 40);
LAYOUT(mlg_plugin_header, key_count, 44);
LAYOUT(mlg_plugin_header, keys, 48);
LAYOUT(mlg_plugin_header, kernel_count, 56);
LAYOUT(mlg_plugin_header, kernels, 64);
SIZE(mlg_plugin_header, 72);
LAYOUT(mlg_host, log, 0);
LAYOUT(mlg_host, running, 8);
SIZE(mlg_host, 16);
LAYOUT(mlg_running, kernel, 0);
LAYOUT(mlg_running, call, 8);
SIZE(mlg_running, 16);
LAYOUT(mlg_key, name, 0);
LAYOUT(mlg_key, type, 8);
LAYOUT(mlg_key, default_value, 16);
LAYOUT(mlg_key, minimum, 24);
LAYOUT(mlg_key, maximum, 32);
LAYOUT(mlg_key, choices, 40);
LAYOUT(mlg_key, help, 48);
SIZE(mlg_key, 56);
LAYOUT(mlg_config, self, 0);
LAYOUT(mlg_config, get_bool, 8);
LAYOUT(mlg_config, get_int, 16);
LAYOUT(mlg_config, get_float, 24);
LAYOUT(mlg_config, get_string, 32);
LAYOUT(mlg_config, get_float_list, 40);
SIZE(mlg_config, 48);
LAYOUT(mlg_tensor, data, 0);
LAYOUT(mlg_tensor, dtype, 8);
LAYOUT(mlg_tensor, rank, 12);
LAYOUT(mlg_tensor, shape, 16);
SIZE(mlg_tensor, 48);
LAYOUT(mlg_attribute, name, 0);
LAYOUT(mlg_attribute, value, 8);
SIZE(mlg_attribute, 16);
LAYOUT(mlg_launch, arguments, 0);
LAYOUT(mlg_launch, argument_count, 8);
LAYOUT(mlg_launch, attributes, 16);
LAYOUT(mlg_launch, workspace, 24);
LAYOUT(mlg_launch, state, 32);
LAYOUT(mlg_launch, parallel_for, 40);
SIZE(mlg_launch, 48);
LAYOUT(mlg_preparation, state, 0);
LAYOUT(mlg_preparation, workspace_bytes, 8);
SIZE(mlg_preparation, 16);
LAYOUT(mlg_kernel, name, 0);
LAYOUT(mlg_kernel, backend, 8);
LAYOUT(mlg_kernel, signature, 16);
LAYOUT(mlg_kernel, prepare, 24);
LAYOUT(mlg_kernel, release, 32);
LAYOUT(mlg_kernel, run, 40);
LAYOUT(mlg_kernel, source, 48);
LAYOUT(mlg_kernel, entry, 56);
SIZE(mlg_kernel, 64);
LAYOUT(mlg_recorder, self, 0);
LAYOUT(mlg_recorder, describe, 8);
LAYOUT(mlg_recorder, state, 16);
LAYOUT(mlg_recorder, scratch, 24);
LAYOUT(mlg_recorder, view, 32);
LAYOUT(mlg_recorder, launch, 40);
LAYOUT(mlg_recorder, survives_warmup, 48);
SIZE(mlg_recorder, 56);
LAYOUT(mlg_parameter, name, 0);
LAYOUT(mlg_parameter, master, 8);
LAYOUT(mlg_parameter, gradient, 12);
LAYOUT(mlg_parameter, lr_multiplier, 16);
LAYOUT(mlg_parameter, weight_decay_multiplier, 24);
SIZE(mlg_parameter, 32);
LAYOUT(mlg_step, step, 0);
LAYOUT(mlg_step, lr, 8);
LAYOUT(mlg_step, total_steps, 16);
LAYOUT(mlg_step, budget_fraction, 24);
LAYOUT(mlg_step, momentum_factor, 32);
LAYOUT(mlg_step, weight_decay_factor, 40);
SIZE(mlg_step, 48);
LAYOUT(mlg_optimizer_table, header, 0);
LAYOUT(mlg_optimizer_table, create, 72);
LAYOUT(mlg_optimizer_table, destroy, 80);
LAYOUT(mlg_optimizer_table, scalar_count, 88);
LAYOUT(mlg_optimizer_table, record, 96);
LAYOUT(mlg_optimizer_table, scalars, 104);
LAYOUT(mlg_optimizer_table, record_evaluation, 112);
LAYOUT(mlg_optimizer_table, record_update, 120);
LAYOUT(mlg_optimizer_table, elementwise, 128);
SIZE(mlg_optimizer_table, 136);
LAYOUT(mlg_update, gradient_scale, 0);
LAYOUT(mlg_update, averages, 8);
LAYOUT(mlg_update, average_decay, 16);
LAYOUT(mlg_update, copies, 24);
SIZE(mlg_update, 32);
LAYOUT(mlg_loss_forward, logits, 0);
LAYOUT(mlg_loss_forward, targets, 4);
LAYOUT(mlg_loss_forward, token_loss, 8);
LAYOUT(mlg_loss_forward, softcap, 16);
LAYOUT(mlg_loss_forward, saved, 24);
SIZE(mlg_loss_forward, 40);
LAYOUT(mlg_loss_backward, forward, 0);
LAYOUT(mlg_loss_backward, upstream, 40);
LAYOUT(mlg_loss_backward, logits_gradient, 44);
SIZE(mlg_loss_backward, 48);
LAYOUT(mlg_loss_table, header, 0);
LAYOUT(mlg_loss_table, fuses_softcap, 72);
LAYOUT(mlg_loss_table, reads_hidden, 76);
LAYOUT(mlg_loss_table, value, 80);
LAYOUT(mlg_loss_table, create, 88);
LAYOUT(mlg_loss_table, destroy, 96);
LAYOUT(mlg_loss_table, record_forward, 104);
LAYOUT(mlg_loss_table, record_backward, 112);
LAYOUT(mlg_loss_table, record_forward_backward, 120);
SIZE(mlg_loss_table, 128);
LAYOUT(mlg_loss_hidden, hidden, 0);
LAYOUT(mlg_loss_hidden, gradient, 4);
LAYOUT(mlg_loss_hidden, accumulate, 8);
SIZE(mlg_loss_hidden, 16);
LAYOUT(mlg_progress, step, 0);
LAYOUT(mlg_progress, total_steps, 8);
LAYOUT(mlg_progress, budget_fraction, 16);
LAYOUT(mlg_progress, epoch, 24);
SIZE(mlg_progress, 32);
LAYOUT(mlg_rate, lr, 0);
LAYOUT(mlg_rate, cycle, 8);
LAYOUT(mlg_rate, momentum_factor, 16);
LAYOUT(mlg_rate, weight_decay_factor, 24);
LAYOUT(mlg_rate, batch_factor, 32);
SIZE(mlg_rate, 40);
LAYOUT(mlg_schedule_table, header, 0);
LAYOUT(mlg_schedule_table, create, 72);
LAYOUT(mlg_schedule_table, destroy, 80);
LAYOUT(mlg_schedule_table, rate, 88);
SIZE(mlg_schedule_table, 96);
LAYOUT(mlg_call, kernel, 0);
LAYOUT(mlg_call, arguments, 8);
LAYOUT(mlg_call, argument_count, 16);
LAYOUT(mlg_call, attributes, 24);
LAYOUT(mlg_call, attribute_count, 32);
SIZE(mlg_call, 40);
LAYOUT(mlg_device_info, description, 0);
LAYOUT(mlg_device_info, memory_bytes, 8);
LAYOUT(mlg_device_info, threads, 16);
LAYOUT(mlg_device_info, computes, 20);
SIZE(mlg_device_info, 24);
LAYOUT(mlg_work, launches, 0);
LAYOUT(mlg_work, library_calls, 4);
LAYOUT(mlg_work, measurement, 8);
SIZE(mlg_work, 12);
LAYOUT(mlg_backend_table, header, 0);
LAYOUT(mlg_backend_table, create, 72);
LAYOUT(mlg_backend_table, destroy, 80);
LAYOUT(mlg_backend_table, info, 88);
LAYOUT(mlg_backend_table, allocate, 96);
LAYOUT(mlg_backend_table, free, 104);
LAYOUT(mlg_backend_table, upload, 112);
LAYOUT(mlg_backend_table, download, 120);
LAYOUT(mlg_backend_table, copy, 128);
LAYOUT(mlg_backend_table, zero, 136);
LAYOUT(mlg_backend_table, add_kernels, 144);
LAYOUT(mlg_backend_table, kernel_at, 152);
LAYOUT(mlg_backend_table, prepare, 160);
LAYOUT(mlg_backend_table, bind, 168);
LAYOUT(mlg_backend_table, run, 176);
LAYOUT(mlg_backend_table, release, 184);
LAYOUT(mlg_backend_table, synchronize, 192);
LAYOUT(mlg_backend_table, determinism, 200);
LAYOUT(mlg_backend_table, replace_kernel, 208);
LAYOUT(mlg_backend_table, queue, 216);
LAYOUT(mlg_backend_table, work, 224);
LAYOUT(mlg_backend_table, mark, 232);
LAYOUT(mlg_backend_table, await, 240);
LAYOUT(mlg_backend_table, made, 248);
SIZE(mlg_backend_table, 256);
LAYOUT(mlg_queue, kind, 0);
LAYOUT(mlg_queue, stream, 8);
LAYOUT(mlg_queue, context, 16);
SIZE(mlg_queue, 24);
LAYOUT(mlg_quantize_request, name, 0);
LAYOUT(mlg_quantize_request, weight, 8);
LAYOUT(mlg_quantize_request, hessian, 16);
LAYOUT(mlg_quantize_request, rows, 24);
LAYOUT(mlg_quantize_request, columns, 32);
LAYOUT(mlg_quantize_request, bits, 40);
LAYOUT(mlg_quantize_request, clip_sigmas, 48);
LAYOUT(mlg_quantize_request, parallel_for, 56);
LAYOUT(mlg_quantize_request, input_rms, 64);
LAYOUT(mlg_quantize_request, protected_starts, 72);
LAYOUT(mlg_quantize_request, protected_count, 80);
LAYOUT(mlg_quantize_request, protected_size, 88);
LAYOUT(mlg_quantize_request, protected_bits, 96);
SIZE(mlg_quantize_request, 104);
LAYOUT(mlg_quantize_result, codes, 0);
LAYOUT(mlg_quantize_result, scales, 8);
LAYOUT(mlg_quantize_result, squared_error, 16);
LAYOUT(mlg_quantize_result, protected_scales, 24);
SIZE(mlg_quantize_result, 32);
LAYOUT(mlg_quantize_tensor, name, 0);
LAYOUT(mlg_quantize_tensor, rows, 8);
LAYOUT(mlg_quantize_tensor, columns, 16);
LAYOUT(mlg_quantize_tensor, bits, 24);
LAYOUT(mlg_quantize_tensor, clip_sigmas, 32);
LAYOUT(mlg_quantize_tensor, weight, 40);
LAYOUT(mlg_quantize_tensor, input_rms, 48);
LAYOUT(mlg_quantize_tensor, read_back, 56);
SIZE(mlg_quantize_tensor, 64);
LAYOUT(mlg_low_rank, rank, 0);
LAYOUT(mlg_low_rank, left, 8);
LAYOUT(mlg_low_rank, right, 16);
LAYOUT(mlg_low_rank, left_group, 24);
LAYOUT(mlg_low_rank, right_group, 32);
LAYOUT(mlg_low_rank, left_scales, 40);
LAYOUT(mlg_low_rank, right_scales, 48);
SIZE(mlg_low_rank, 56);
LAYOUT(mlg_quantize_choices, context, 0);
LAYOUT(mlg_quantize_choices, protect, 8);
LAYOUT(mlg_quantize_choices, correct, 16);
LAYOUT(mlg_quantize_choices, protected_size, 24);
LAYOUT(mlg_quantize_choices, protected_bits, 32);
SIZE(mlg_quantize_choices, 40);
LAYOUT(mlg_quantizer_table, header, 0);
LAYOUT(mlg_quantizer_table, needs_hessian, 72);
LAYOUT(mlg_quantizer_table, create, 80);
LAYOUT(mlg_quantizer_table, destroy, 88);
LAYOUT(mlg_quantizer_table, quantize, 96);
LAYOUT(mlg_quantizer_table, protect, 104);
LAYOUT(mlg_quantizer_table, correct, 112);
LAYOUT(mlg_quantizer_table, extra_bytes, 120);
SIZE(mlg_quantizer_table, 128);
LAYOUT(mlg_tap, kind, 0);
LAYOUT(mlg_tap, slot, 8);
LAYOUT(mlg_tap, layer, 12);
LAYOUT(mlg_tap, documents, 16);
LAYOUT(mlg_tap, tokens, 24);
LAYOUT(mlg_tap, inputs, 32);
LAYOUT(mlg_tap, outputs, 40);
SIZE(mlg_tap, 48);
LAYOUT(mlg_adapter, name, 0);
LAYOUT(mlg_adapter, shape, 8);
LAYOUT(mlg_adapter, start, 56);
LAYOUT(mlg_adapter, keep, 60);
LAYOUT(mlg_adapter, bound, 64);
SIZE(mlg_adapter, 72);
LAYOUT(mlg_tap_forward, block_input, 0);
LAYOUT(mlg_tap_forward, output, 4);
LAYOUT(mlg_tap_forward, adapters, 8);
LAYOUT(mlg_tap_forward, saved, 24);
SIZE(mlg_tap_forward, 40);
LAYOUT(mlg_tap_backward, forward, 0);
LAYOUT(mlg_tap_backward, output_gradient, 40);
LAYOUT(mlg_tap_backward, gradients, 44);
LAYOUT(mlg_tap_backward, input_gradient, 60);
LAYOUT(mlg_tap_backward, accumulate, 64);
SIZE(mlg_tap_backward, 72);
LAYOUT(mlg_base_update, chunk_tokens, 0);
LAYOUT(mlg_base_update, batch_rows, 8);
LAYOUT(mlg_base_update, epochs, 16);
LAYOUT(mlg_base_update, respect_documents, 24);
LAYOUT(mlg_base_update, momentum, 32);
LAYOUT(mlg_base_update, clip_norm, 40);
SIZE(mlg_base_update, 48);
LAYOUT(mlg_ttt_table, header, 0);
LAYOUT(mlg_ttt_table, create, 72);
LAYOUT(mlg_ttt_table, destroy, 80);
LAYOUT(mlg_ttt_table, declare, 88);
LAYOUT(mlg_ttt_table, record_forward, 96);
LAYOUT(mlg_ttt_table, record_backward, 104);
LAYOUT(mlg_ttt_table, base_update, 112);
LAYOUT(mlg_ttt_table, base_rate, 120);
SIZE(mlg_ttt_table, 128);
LAYOUT(mlg_group, rank, 0);
LAYOUT(mlg_group, size, 4);
LAYOUT(mlg_group, local_rank, 8);
LAYOUT(mlg_group, local_size, 12);
LAYOUT(mlg_group, interface_name, 16);
LAYOUT(mlg_group, self, 24);
LAYOUT(mlg_group, put, 32);
LAYOUT(mlg_group, get, 40);
SIZE(mlg_group, 48);
LAYOUT(mlg_collective, kind, 0);
LAYOUT(mlg_collective, dtype, 4);
LAYOUT(mlg_collective, root, 8);
LAYOUT(mlg_collective, from, 16);
LAYOUT(mlg_collective, to, 24);
LAYOUT(mlg_collective, count, 32);
SIZE(mlg_collective, 40);
LAYOUT(mlg_communicator_table, header, 0);
LAYOUT(mlg_communicator_table, create, 72);
LAYOUT(mlg_communicator_table, destroy, 80);
LAYOUT(mlg_communicator_table, open, 88);
LAYOUT(mlg_communicator_table, prepare, 96);
LAYOUT(mlg_communicator_table, submit, 104);
LAYOUT(mlg_communicator_table, join, 112);
LAYOUT(mlg_communicator_table, poll, 120);
LAYOUT(mlg_communicator_table, abort, 128);
LAYOUT(mlg_communicator_table, release, 136);
LAYOUT(mlg_communicator_table, begun, 144);
SIZE(mlg_communicator_table, 152);
LAYOUT(mlg_bias, token, 0);
LAYOUT(mlg_bias, bias, 8);
SIZE(mlg_bias, 16);
LAYOUT(mlg_transform_text, vocabulary, 0);
LAYOUT(mlg_transform_text, tokens, 8);
LAYOUT(mlg_transform_text, places, 16);
SIZE(mlg_transform_text, 24);
LAYOUT(mlg_transform_table, header, 0);
LAYOUT(mlg_transform_table, biases, 72);
LAYOUT(mlg_transform_table, create, 80);
LAYOUT(mlg_transform_table, destroy, 88);
LAYOUT(mlg_transform_table, open, 96);
LAYOUT(mlg_transform_table, close, 104);
LAYOUT(mlg_transform_table, begin, 112);
LAYOUT(mlg_transform_table, propose, 120);
LAYOUT(mlg_transform_table, observe, 128);
SIZE(mlg_transform_table, 136);
LAYOUT(mlg_ensemble_weight, name, 0);
LAYOUT(mlg_ensemble_weight, centre, 8);
LAYOUT(mlg_ensemble_weight, rows, 16);
LAYOUT(mlg_ensemble_weight, columns, 24);
LAYOUT(mlg_ensemble_weight, tensor, 32);
LAYOUT(mlg_ensemble_weight, seed, 40);
LAYOUT(mlg_ensemble_weight, member, 48);
LAYOUT(mlg_ensemble_weight, parallel_for, 56);
SIZE(mlg_ensemble_weight, 64);
LAYOUT(mlg_ensemble_table, header, 0);
LAYOUT(mlg_ensemble_table, create, 72);
LAYOUT(mlg_ensemble_table, destroy, 80);
LAYOUT(mlg_ensemble_table, make, 88);
LAYOUT(mlg_ensemble_table, stored_bytes, 96);
SIZE(mlg_ensemble_table, 104);

LAYOUT(mlg_wrapped_parameter, name, 0);
LAYOUT(mlg_wrapped_parameter, master, 8);
LAYOUT(mlg_wrapped_parameter, rest, 12);
SIZE(mlg_wrapped_parameter, 16);
LAYOUT(mlg_group_rate, name, 0);
LAYOUT(mlg_group_rate, lr, 8);
LAYOUT(mlg_group_rate, base_lr, 16);
SIZE(mlg_group_rate, 24);
LAYOUT(mlg_wrapper_step, step, 0);
LAYOUT(mlg_wrapper_step, total_steps, 8);
LAYOUT(mlg_wrapper_step, budget_fraction, 16);
LAYOUT(mlg_wrapper_step, rates, 24);
LAYOUT(mlg_wrapper_step, rate_count, 32);
SIZE(mlg_wrapper_step, 40);
LAYOUT(mlg_wrapper_table, header, 0);
LAYOUT(mlg_wrapper_table, create, 72);
LAYOUT(mlg_wrapper_table, destroy, 80);
LAYOUT(mlg_wrapper_table, scalar_count, 88);
LAYOUT(mlg_wrapper_table, record, 96);
LAYOUT(mlg_wrapper_table, scalars, 104);
SIZE(mlg_wrapper_table, 112);

static_assert(MLG_ABI_MAGIC == 0x4E474C4Du && MLG_ABI_MAJOR == 1 && MLG_ABI_MINOR == 0);
static_assert(MLG_DETERMINISM_NONE == 0 && MLG_DETERMINISM_RUN == 1 && MLG_DETERMINISM_BATCH == 2);
static_assert(MLG_BACKEND == 1 && MLG_LOSS == 2 && MLG_OPTIMIZER == 3 && MLG_SCHEDULE == 4 && MLG_TTT == 5 &&
              MLG_QUANTIZER == 6 && MLG_COMMUNICATOR == 7 && MLG_TRANSFORM == 8 && MLG_ENSEMBLE == 9 &&
              MLG_WRAPPER == 10);
static_assert(MLG_QUEUE_NONE == -1 && MLG_QUEUE_HOST == 0 && MLG_QUEUE_CUDA == 1);
static_assert(MLG_ALL_REDUCE == 0 && MLG_REDUCE_SCATTER == 1 && MLG_ALL_GATHER == 2 && MLG_ALL_TO_ALL == 3 &&
              MLG_BROADCAST == 4 && MLG_REDUCE == 5);
static_assert(MLG_KEY_BOOL == 1 && MLG_KEY_INT == 2 && MLG_KEY_FLOAT == 3 && MLG_KEY_STRING == 4 &&
              MLG_KEY_FLOAT_LIST == 5);
static_assert(MLG_ABSENT == -1 && MLG_F32 == 0 && MLG_BF16 == 1 && MLG_F16 == 2 && MLG_F64 == 3 &&
              MLG_I32 == 4 && MLG_I64 == 5 && MLG_U16 == 6 && MLG_U8 == 7 && MLG_I8 == 8);
static_assert(MLG_MAX_RANK == 4 && MLG_LOSS_MAX_SAVED == 4);

namespace mulligan::plugin_abi_layout_test {
namespace {

// What the SDK's wrapper stamps into a built plugin is this layout.
TEST(PluginAbi, BuiltPluginsCarryTheReleasedSizes) {
  const PluginHandle schedule = test_plugin_host().load(PluginKind::schedule, "warmdown");
  EXPECT_EQ(schedule->table<mlg_schedule_table>().header.struct_size, sizeof(mlg_schedule_table));
  const PluginHandle backend = test_plugin_host().load(PluginKind::backend, "null");
  EXPECT_EQ(backend->table<mlg_backend_table>().header.struct_size, sizeof(mlg_backend_table));
  EXPECT_EQ(backend->table<mlg_backend_table>().header.magic, MLG_ABI_MAGIC);
  EXPECT_EQ(backend->abi(), "1.0");
  const PluginHandle communicator = test_plugin_host().load(PluginKind::communicator, "self");
  EXPECT_EQ(communicator->table<mlg_communicator_table>().header.struct_size, sizeof(mlg_communicator_table));
}

}  // namespace
}  // namespace mulligan::plugin_abi_layout_test
