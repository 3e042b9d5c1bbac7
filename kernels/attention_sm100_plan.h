#pragma once

#include "kernels/attention_sm90_plan.h"

namespace tilewright::kernels {

// Where a block's weights lie until the product with V has read them.
enum class WeightsIn {
  own_columns,
  // Of the same tile: the next block's scores wait for that product, since PTX orders no product
  // behind another one that reads what it writes.
  columns_of_scores,
  shared_memory,
};

// How the tensor and shared memory of a CTA and the registers of its threads are divided.
struct Sm100Plan : TilePlan {
  static constexpr int kRows = 128;     // of a tile: its lanes in tensor memory
  static constexpr int kWarpRows = 32;  // that a warp reaches

  int tiles;
  bool corrects_apart;  // a warpgroup of its own rescales and stores the sums
  WeightsIn weights;
  // In columns of tensor memory: what a tile has, and in it where its weights and sums begin. Its
  // scores come first.
  int tile_columns, first_weights, first_sums;
  int tensor_columns;  // of all tiles, a power of two
  // In shared memory: whole panels of 128 bytes, as for sm_90a.
  int qk_columns, v_columns;
  int kv_stages;
  // A thread has so many columns of the sums in registers at a time. They leave by the buffers in
  // turn.
  int o_columns, o_buffers;
  int few_registers, weighing_registers, correcting_registers;  // a thread
};
// Raises for what the schedule does not take, and for blocks that do not fit.
Sm100Plan sm100_plan(const Attention& attention, AttentionRoles roles, const Caller& caller);

}  // namespace tilewright::kernels
