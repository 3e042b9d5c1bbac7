#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "codegen/nvrtc_build.h"
#include "codegen/ranks_text.h"

// What reaches other ranks, as CUDA.
namespace tilewright::codegen {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(RanksPrinter, PeersAreChosenFromTheParameters) {
  const CudaSource source = print_cuda(parsed(ranks_text()));
  EXPECT_THAT(source.text,
              HasSubstr("exchange(const __grid_constant__ PeerMaps parts_4, int rank, int epoch, "
                        "const __grid_constant__ Peers<float> parts_1_peers, "
                        "const __grid_constant__ Peers<int> flags_2_peers, i64 parts_1_stride0, "
                        "i64 parts_1_stride1, int* flags_2, int dim_ranks, int dim1) {"));
  EXPECT_THAT(source.text, HasSubstr("const TensorMap& v15 = parts_4.rank[v12];"));
  EXPECT_THAT(source.text, HasSubstr("float* const v16 = parts_1_peers.rank[v12];"));
  EXPECT_THAT(source.text, HasSubstr("int* const v17 = flags_2_peers.rank[v12];"));
  EXPECT_THAT(source.text, HasSubstr("float* const first = v16 + "));
  EXPECT_THAT(source.text, HasSubstr("const int v11 = rank + 1;"));
  EXPECT_THAT(source.text, HasSubstr("if (lane == 0) tma_store_3d(tile_3, v15, 0, 0, rank);"));
  EXPECT_THAT(source.text,
              HasSubstr(" = dim_mod(v11, dim_ranks, dim1)"));  // ranks are no less than 0
  // Which of them is not known before it is chosen.
  EXPECT_THAT(source.text, Not(HasSubstr("prefetch_map")));
}

TEST(RanksPrinter, OrdersAreThoseOfPtx) {
  const std::string text = print_cuda(parsed(ranks_text())).text;
  for (const char* part :
       {"st.weak.b32 [%0], %1;", "st.relaxed.gpu.b32 [%0], %1;", "st.release.sys.b32 [%0], %1;",
        "ld.relaxed.cta.b32 %0, [%1];", "ld.acquire.sys.b32 %0, [%1];",
        "red.release.sys.global.add.u32 [%0], %1;", "red.relaxed.cluster.global.add.u32 [%0], %1;",
        "atom.acq_rel.gpu.add.s32 %0, [%1], %2;", "fence.acq_rel.sys;", "fence.acq_rel.cta;",
        "fence.proxy.async.global;",
        "const int v19 = __shfl_sync(0xffffffffu, *(flags_2 + rank), 0);",
        "if (lane == 0) store_release_sys(v17 + v",
        "wait_flag_ge_acquire_sys(flags_2 + rank, epoch);",
        // A word counts on past 2^31, where it is less than before.
        "} while (!((int)((u32)v - (u32)value) >= 0));",
        "} while (!((int)((u32)v - (u32)value) > 0));",
        "} while (!((int)((u32)v - (u32)value) <= 0));",
        "} while (!((int)((u32)v - (u32)value) < 0));", "} while (!(v == value));",
        "} while (!(v != value));"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

// Of the old values nobody reads the first, and the second is an element's number.
TEST(RanksPrinter, AdditionsThatNobodyReadsAreReductions) {
  const std::string text = print_cuda(parsed(ranks_text())).text;
  for (const char* order : {"relaxed_gpu", "release_sys"}) {
    EXPECT_THAT(text, HasSubstr(fmt::format("atomic_add_unread_{}(v17 + rank, 1);", order)));
    EXPECT_THAT(text, HasSubstr(fmt::format(" = atomic_add_{}(v17 + rank, 1);", order)));
  }
  EXPECT_THAT(text, Not(HasSubstr("unread_acq")));
}

TEST(RanksPrinter, LaunchesPassRankEpochAndTables) {
  const CudaSource source = print_cuda(parsed(ranks_text()));
  using Kind = LaunchParameter::Kind;
  std::vector<Kind> kinds;
  for (const LaunchParameter& parameter : source.parameters) kinds.push_back(parameter.kind);
  EXPECT_THAT(kinds, ElementsAre(Kind::peer_maps, Kind::rank, Kind::epoch, Kind::peer_pointers,
                                 Kind::peer_pointers, Kind::stride, Kind::stride, Kind::pointer,
                                 Kind::dim, Kind::dim));
}

// A launch that is repeated as it is finds its epoch in memory.
TEST(RanksPrinter, TheEpochMayBeInMemory) {
  const CudaSource source = print_cuda_with_epoch_word(parsed(ranks_text()));
  EXPECT_THAT(source.text, AllOf(HasSubstr("const int* epoch"), HasSubstr(" = *epoch;"),
                                 Not(HasSubstr("int epoch,"))));
  const auto words = std::count_if(
      source.parameters.begin(), source.parameters.end(),
      [](const LaunchParameter& each) { return each.kind == LaunchParameter::Kind::epoch_word; });
  EXPECT_EQ(words, 1);
}

}  // namespace
}  // namespace tilewright::codegen
