#pragma once

#include "kernels/caller.h"
#include "tilewright/kernels/attention.h"

namespace tilewright::kernels {

// What an order of tiles reads of a plan, whichever target it is for.
struct TilePlan {
  // Heads that share keys and lie beside each other in the rows of a tile: with few queries they
  // fill it. The rows that a warp stores hold whole queries.
  int packed_heads = 1;
  // A window over long rows: its tiles are short, and their copies count.
  bool waits_for_copies = false;
  // A CTA takes neighbouring tiles in a row, and the blocks of keys that both see stay in their
  // stages, where queries and keys are shifted by a multiple of so many rows.
  bool slides = false;
  int slide_multiple = 1;
};
// The heads that a tile packs whose warps store so many rows each.
int packed_heads(const Attention& attention, int warp_rows);
// Columns of a row of so many elements in shared memory.
int shared_columns(const Attention& attention, int dim);

// How the shared memory of a CTA and the registers of its threads are divided for given blocks.
struct Sm90Plan : TilePlan {
  // Columns of Q and K, and of V, in shared memory: whole panels of 128 bytes, since narrower ones
  // cost twice the copies. TMA fills what lies beyond the dim with zeros; products leave it out.
  int qk_columns, v_columns;
  int q_stages, kv_stages;
  // One stage holds what one step reads: a block's K, and V of the block above.
  bool kv_together;
  // Scores outlive their weights, so that a maximum is looked for only where it has to rise.
  bool scores_last;
  // The output leaves through the stage of Q that its tile came in, or through `o_buffers` buffers
  // of its own in turn, of so many columns each.
  bool o_in_q;
  int o_columns, o_buffers;
  int load_registers, math_registers;  // a thread
};
// `has_neighbours`: a CTA may take the tiles of a head in a row. Raises for what the schedule does
// not take, and for blocks that do not fit.
Sm90Plan sm90_plan(const Attention& attention, bool has_neighbours, const Caller& caller);

}  // namespace tilewright::kernels
