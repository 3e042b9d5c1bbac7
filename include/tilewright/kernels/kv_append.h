#pragma once

#include "tilewright/kernel.h"

namespace tilewright::kernels {

// Appends keys and values of new tokens to a cache in pages, as attention_paged reads it.
struct KvAppend {
  int kv_heads = 8;
  int dim = 128, dim_v = 128;
  int page = 16;       // slots of a page
  DType dtype = bf16;  // of the new keys and values
  DType cache = bf16;  // of the cache: the same, or f8e4m3
  int rotary_dim = 0;  // so many elements of a key are rotated by its position; 0: none
  // One row of dim elements a token, as attention_paged_mla reads it, without kv_heads and dim_v.
  bool latent = false;
};

// Token t belongs to sequence sequences[t], and its key is number positions[t] there: slot
// position % page of page block_table[sequence][position / page]. A token of a negative position,
// or whose page is -1, is left out. Any other number outside of its tensor is a fault. No two
// tokens have one place. What no token is written to stays as it is.
// With rotary_dim r the pair (x[i], x[i + r / 2]) of a key, i < r / 2, is turned by the angle whose
// cosine and sine cos_sin[position] has, the cosines first; what is behind r stays. Of latent rows
// the last r elements are turned so, and what is in front of them stays.
// In a cache of f8e4m3 stands x / scale, rounded to the nearest and no further than 448.
// in     K [tokens, kv_heads, dim], V [tokens, kv_heads, dim_v]; latent: KV [tokens, dim]
// in     sequences i32 [tokens], positions i32 [tokens], block_table i32 [batch, max_pages]
// in     with rotary_dim: cos_sin f32 [positions, rotary_dim]
// in     with f8e4m3: K_scale f32 [kv_heads], V_scale f32 [kv_heads]
// inout  K_cache [pages, page, kv_heads, dim], V_cache [pages, page, kv_heads, dim_v]; a cache
//        whose pages have head behind head is given with strides that say so; latent: KV_cache
//        [pages, page, dim]
Kernel kv_append(const KvAppend& append, SourceLocation where = here());

}  // namespace tilewright::kernels
