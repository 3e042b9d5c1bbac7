#include <fmt/format.h>

#include <functional>

#include "simulator/machine_kernels.h"

namespace tilewright::simulator {
namespace {

using ::testing::HasSubstr;

constexpr int kSwizzles[] = {0, 32, 64, 128};

// Y = X shifted by `row`, `column` elements: a box {16, swizzle bytes} is copied to shared memory
// from there and back to the origin of Y. `after` follows the store.
std::string copy_text(int swizzle, int row, int column, const std::string& after) {
  const int columns = swizzle ? swizzle / 2 : 64;
  return fmt::format(R"(kernel "copy" machine
in X: bf16[40, 200] = %0
out Y: bf16[16, {0}] = %1
grid (1)
threads 32
shared_bytes 2056
body () {{
  %5: tensor_map = tensor_map %0 {{name = "X map", box = [16, {0}], swizzle = {1}}}
  %6: tensor_map = tensor_map %1 {{name = "Y map", box = [16, {0}], swizzle = {1}}}
  %7: shared<bf16, 1x16x{0}> = shared {{name = "box", layout = shared_layout[16x{0}*2|16@0:{2},{0}@1:2], stages = 1, offset = 0}}
  %8: mbarriers<1> = mbarriers {{name = "full", arrivals = 1, offset = 2048}}
  mbarrier_init %8 {{arrivals = 1}}
  fence_barrier_init
  cta_sync
  %20: i32 = constant {{value = 0}}
  %21: i32 = constant {{value = {3}}}
  %22: i32 = constant {{value = {4}}}
  mbarrier_expect_tx %8, %20 {{bytes = {5}}}
  tma_load %5, %7, %20, %8, %20, %21, %22 {{bytes = {5}}}
  mbarrier_wait %8, %20, %20
  tma_store %6, %7, %20, %20, %20
{6}}}
)",
                     columns, swizzle, columns * 2, column, row, 32 * columns, after);
}

// What copy_text copies between; X is random.
struct CopyTensors {
  explicit CopyTensors(int columns) : y("Y", DType::bf16, {16, columns}) { x.randomise(9); }
  MachineTensor x{"X", DType::bf16, {40, 200}}, y;
};

const std::string kCommitAndWait = "  bulk_commit\n  bulk_wait {count = 0}\n";

TEST(MachineCopies, BoxesAreClippedAndFilledWithZeros) {
  for (const int swizzle : kSwizzles) {
    const int columns = swizzle ? swizzle / 2 : 64;
    for (const auto& [row, column] : {std::pair(0, 0), std::pair(5, 3), std::pair(30, 150),
                                      std::pair(-3, -9), std::pair(60, 0)}) {
      CopyTensors tensors(columns);
      auto& [x, y] = tensors;
      const MachineReport report =
          run_seed(copy_text(swizzle, row, column, kCommitAndWait), {&x, &y}, 11);
      ASSERT_TRUE(report.ok()) << first_message(report);
      for (int i = 0; i < 16; ++i) {
        for (int j = 0; j < columns; ++j) {
          const int r = row + i, c = column + j;
          const bool exists = r >= 0 && r < 40 && c >= 0 && c < 200;
          ASSERT_EQ(y.at(i, j), exists ? x.at(r, c) : 0.0f) << swizzle << ": " << i << ", " << j;
        }
      }
    }
  }
}

const std::string kRagged = R"(kernel "ragged" machine
in X: bf16[40, 2, 64] = %0
out Y: bf16[40, 2, 64] = %1
grid (1)
threads 32
shared_bytes 2056
body () {{
  %5: tensor_map = tensor_map %0 {{name = "X map", box = [16, 1, 64], swizzle = 128, ragged = 0}}
  %6: tensor_map = tensor_map %1 {{name = "Y map", box = [16, 1, 64], swizzle = 128, ragged = 0}}
  %7: shared<bf16, 1x16x64> = shared {{name = "box", layout = shared_layout[16x64*2|16@0:128,64@1:2|x3.4.3], stages = 1, offset = 0}}
  %8: mbarriers<1> = mbarriers {{name = "full", arrivals = 1, offset = 2048}}
  mbarrier_init %8 {{arrivals = 1}}
  fence_barrier_init
  cta_sync
  %20: i32 = constant {{value = 0}}
  %21: i32 = constant {{value = 1}}
  %22: i32 = constant {{value = {0}}}
  %23: i32 = constant {{value = {1}}}
  %24: i32 = constant {{value = 40}}
  %25: i32 = sub %24, %23
  %26: i32 = add %25, %22
  %27: bool = le %24, %26
  %28: bool = lt %26, %24
  %29: bool = constant {{value = 0}}
  %30: tensor_map = ragged_map %5, {3}
  %31: tensor_map = ragged_map %6, {4}
  mbarrier_expect_tx %8, %20 {{bytes = 2048}}
  tma_load %30, %7, %20, %8, %20, %20, %21, %26, %23 {{bytes = 2048}}
  mbarrier_wait %8, %20, %20
  tma_store %31, %7, %20, %20, %21, {2}
  bulk_commit
  bulk_wait {{count = 0}}
}}
)";
// Whether the box begins behind where it ends, and other answers.
const std::string kOutside = "%27", kInside = "%28", kNever = "%29";
const std::string kFromStart = "%20, %24", kSameRows = "%26, %23";

std::string ragged_text(int first, int limit, const std::string& to, const std::string& load,
                        const std::string& store) {
  return fmt::format(fmt::runtime(kRagged), first, limit, to, load, store);
}

// Rows `first` and on that are below `limit` go from X to the same rows of Y; both maps are ragged
// on axis 0, which has 40 rows.
TEST(MachineCopies, ARaggedMapEndsWhereTheCopySays) {
  // Either the whole box is stored, to Y's first rows, so that what was not loaded shows as zeros;
  // or the rows that were loaded, where they were in X.
  for (const auto& [first, limit] : {std::pair(0, 40), std::pair(3, 11), std::pair(30, 40),
                                     std::pair(8, 8), std::pair(20, 12), std::pair(39, 40)}) {
    for (const bool whole : {true, false}) {
      MachineTensor x("X", DType::bf16, {40, 2, 64}), y("Y", DType::bf16, {40, 2, 64});
      x.randomise(3);
      y.randomise(4);
      const MachineTensor before = y;
      const MachineReport report =
          run_seed(ragged_text(first, limit, whole ? kFromStart : kSameRows, kOutside,
                               whole ? kNever : kOutside),
                   {&x, &y}, 7);
      ASSERT_TRUE(report.ok()) << first_message(report);
      for (int row = 0; row < 40; ++row) {
        const int source = whole ? first + row : row;
        const bool stored = whole ? row < 16 : row >= first && row < first + 16 && row < limit;
        for (int column = 0; column < 64; ++column) {
          const auto at = [column](const MachineTensor& t, int r, int h) {
            return t.values[(r * 2 + h) * 64 + column];
          };
          const float loaded = source < limit ? at(x, source, 1) : 0.0f;
          ASSERT_EQ(at(y, row, 1), stored ? loaded : at(before, row, 1))
              << first << ".." << limit << ": row " << row;
          ASSERT_EQ(at(y, row, 0), at(before, row, 0));
        }
      }
    }
  }
}

// The map begins as far before its tensor as that is long: a copy may not reach what lies there.
TEST(MachineCopies, ARaggedMapHasNothingBeforeItsTensor) {
  for (const int first : {0, -1}) {
    MachineTensor x("X", DType::bf16, {40, 2, 64}), y("Y", DType::bf16, {40, 2, 64});
    x.randomise(3);
    const std::string text = ragged_text(first, 8, kFromStart, kOutside, kNever);
    const MachineReport report = run_seed(text, {&x, &y}, 7);
    EXPECT_EQ(report.ok(), first == 0) << first_message(report);
    if (report.ok()) continue;
    EXPECT_EQ(report.faults[0].kind, "out_of_bounds");
    EXPECT_THAT(report.faults[0].message, HasSubstr("row -1 of X"));
    EXPECT_EQ(report.faults[0].first.line, line_of(text, "tma_load"));
  }
}

// For a box that lies wholly outside hardware touches where the map begins: of the first map that
// is before the tensor.
TEST(MachineCopies, ABoxThatLiesOutsideTakesTheMapThatBeginsWithTheTensor) {
  const auto fault_of = [](const std::string& text, const char* copy) {
    MachineTensor x("X", DType::bf16, {40, 2, 64}), y("Y", DType::bf16, {40, 2, 64});
    x.randomise(3);
    const MachineReport report = run_seed(text, {&x, &y}, 7);
    if (report.ok()) return std::string("none");
    EXPECT_EQ(report.faults[0].kind, "out_of_bounds");
    EXPECT_EQ(report.faults[0].first.line, line_of(text, copy));
    return report.faults[0].message;
  };
  for (const auto& [first, limit] : {std::pair(0, 0), std::pair(8, 8), std::pair(45, 40)}) {
    for (const std::string& wrong : {kInside, kNever}) {
      const auto touches = [](const std::string& tensor) {
        return HasSubstr("a box that lies wholly outside of " + tensor +
                         " makes TMA touch the address where its map begins, 10240 bytes before");
      };
      EXPECT_THAT(fault_of(ragged_text(first, limit, kFromStart, wrong, kNever), "tma_load"),
                  touches("X"));
      // A store touches nothing.
      EXPECT_EQ(fault_of(ragged_text(first, limit, kSameRows, kOutside, wrong), "tma_store"),
                "none");
    }
  }
  EXPECT_THAT(
      fault_of(ragged_text(3, 11, kSameRows, kOutside, kInside), "tma_store"),
      HasSubstr("a box that reaches Y is 10240 bytes behind it in the map for boxes outside"));
  // Rows 3 to 7 exist, and the box begins at column -8.
  std::string before = ragged_text(3, 8, kFromStart, kOutside, kNever);
  before.replace(before.find("%8, %20, %20, %21"), 17, "%8, %20, %32, %21");
  before.insert(before.find("  mbarrier_expect_tx"), "  %32: i32 = constant {value = -8}\n");
  EXPECT_THAT(fault_of(before, "tma_load"),
              HasSubstr("a box that begins before X makes TMA touch the address where its map"));
  // It ends where the columns begin: nothing of it exists.
  std::string beside = ragged_text(3, 8, kFromStart, kInside, kNever);
  beside.replace(beside.find("%8, %20, %20, %21"), 17, "%8, %20, %32, %21");
  beside.insert(beside.find("  mbarrier_expect_tx"), "  %32: i32 = constant {value = -64}\n");
  EXPECT_EQ(fault_of(beside, "tma_load"), "none");
  EXPECT_THAT(
      fault_of(ragged_text(3, 11, kFromStart, kInside, kNever), "tma_load"),
      HasSubstr("a box that reaches X is 10240 bytes behind it in the map for boxes outside"));
}

// Hardware takes them for an illegal instruction, also where part of the box lies in the tensor.
TEST(MachineCopies, StoresBeginInTheirTensorOnEveryAxis) {
  const auto stored_at = [](const std::string& column, const std::string& row) {
    std::string text = copy_text(128, -3, -16, kCommitAndWait);
    const std::string from = "tma_store %6, %7, %20, %20, %20";
    text.replace(text.find(from), from.size(), "tma_store %6, %7, %20, " + column + ", " + row);
    CopyTensors tensors(64);
    auto& [x, y] = tensors;
    const MachineReport report = run_seed(text, {&x, &y}, 7);
    if (report.ok()) return std::string("none");
    EXPECT_EQ(report.faults[0].first.line, line_of(text, "tma_store"));
    return report.faults[0].message;
  };
  EXPECT_EQ(stored_at("%20", "%20"), "none");
  EXPECT_THAT(stored_at("%20", "%22"),
              HasSubstr("a store by TMA to Y that begins at -3 on axis 0: hardware takes no"));
  EXPECT_THAT(stored_at("%21", "%20"), HasSubstr("that begins at -16 on axis 1"));
  const std::string ends_before = ragged_text(0, -4, kSameRows, kOutside, kNever);
  MachineTensor x("X", DType::bf16, {40, 2, 64}), y("Y", DType::bf16, {40, 2, 64});
  const MachineReport report = run_seed(ends_before, {&x, &y}, 7);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.faults[0].message, HasSubstr("a store by TMA to Y that ends at -4"));
}

TEST(MachineCopies, StoreThatIsNotWaitedForIsFound) {
  CopyTensors tensors(64);
  auto& [x, y] = tensors;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const MachineReport none = run_seed(copy_text(128, 0, 0, "  bulk_commit\n"), {&x, &y}, seed);
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.faults[0].kind, "bulk");
    EXPECT_EQ(none.faults[0].missing, "bulk_wait_read(0) before the kernel ends");
    const MachineReport uncommitted =
        run_seed(copy_text(128, 0, 0, "  bulk_wait {count = 0}\n"), {&x, &y}, seed);
    ASSERT_FALSE(uncommitted.ok());
    EXPECT_THAT(uncommitted.faults[0].missing, HasSubstr("bulk_commit"));
    const MachineReport later =
        run_seed(copy_text(128, 0, 0, "  bulk_commit\n  bulk_wait {count = 1}\n"), {&x, &y}, seed);
    EXPECT_FALSE(later.ok());
  }
}

TEST(MachineCopies, SourceOverwrittenBeforeTheBulkWaitIsARace) {
  const std::string overwrite =
      "  %30: registers<bf16, 8> = registers {name = \"values\"}\n"
      "  %31: bf16 = constant {value = 1.0}\n  fill %30, %31\n"
      "  store_matrix %30, %7, %20, %20 {register = 0, row_bytes = 128, column_bytes = 0, "
      "swizzle_divisor = 1, swizzle_mask = 7}\n";
  CopyTensors tensors(64);
  auto& [x, y] = tensors;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const MachineReport early =
        run_seed(copy_text(128, 0, 0, "  bulk_commit\n" + overwrite + "  bulk_wait {count = 0}\n"),
                 {&x, &y}, seed);
    ASSERT_FALSE(early.ok());
    EXPECT_EQ(early.faults[0].kind, "race");
    EXPECT_THAT(early.faults[0].missing, HasSubstr("bulk_wait"));
    const MachineReport late = run_seed(
        copy_text(128, 0, 0,
                  "  bulk_commit\n  bulk_wait {count = 0, read = 1}\n  warp_sync\n" + overwrite),
        {&x, &y}, seed);
    ASSERT_TRUE(late.ok()) << first_message(late);
    EXPECT_EQ(y.at(3, 4), x.at(3, 4)) << "what was there when the wait ended";
  }
}

// TMA writes 16 bytes at a time: beyond the end of rows that end inside of them.
TEST(MachineCopies, RowsThatEndInside16BytesAreFound) {
  for (const int columns : {64, 60, 57, 56}) {
    std::string text = copy_text(128, 0, 0, kCommitAndWait);
    text = changed(text, "out Y: bf16[16, 64]", fmt::format("out Y: bf16[16, {}]", columns));
    const ir::Kernel kernel = ir::parse_text(text, "kernel.tw");
    CopyTensors tensors(64);
    Arguments arguments;
    for (MachineTensor* tensor : {&tensors.x, &tensors.y}) {
      arguments.tensors.push_back(tensor->argument());
    }
    arguments.tensors[1].shape[1] = columns;  // of rows that lie as far apart as before
    const MachineReport report = run_machine(kernel, arguments, {});
    if (columns % 8 == 0) {
      EXPECT_TRUE(report.ok()) << columns << first_message(report);
      continue;
    }
    ASSERT_FALSE(report.ok()) << columns;
    EXPECT_EQ(report.faults[0].kind, "out_of_bounds");
    EXPECT_THAT(report.faults[0].message, HasSubstr("TMA writes whole 16 bytes"));
    EXPECT_EQ(report.faults[0].first.line, line_of(text, "tma_store"));
  }
}

TEST(MachineCopies, StoresOfWhatNobodyWroteAreFound) {
  std::string text = copy_text(128, 0, 0, kCommitAndWait);
  const std::size_t load = text.find("  mbarrier_expect_tx"), store = text.find("  tma_store");
  text.erase(load, store - load);
  CopyTensors tensors(64);
  const MachineReport report = run(text, {&tensors.x, &tensors.y});
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.faults[0].kind, "uninitialised");
  EXPECT_THAT(report.faults[0].message, HasSubstr("shared box"));
  EXPECT_EQ(report.faults[0].first.line, line_of(text, "tma_store"));
}

TEST(MachineCopies, AddressesThatHardwareRefusesAreFound) {
  CopyTensors tensors(32);
  auto& [x, y] = tensors;
  std::string text = copy_text(64, 0, 0, kCommitAndWait);
  text = changed(text, "stages = 1, offset = 0", "stages = 1, offset = 256");
  const MachineReport report = run(text, {&x, &y});
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.faults[0].kind, "tensor_map");
  EXPECT_THAT(report.faults[0].message, HasSubstr("shared address 0x100 is not a multiple of 512"));
  // Without a swizzle the place of a copy begins at a multiple of 128 bytes.
  CopyTensors plain(64);
  std::string unaligned = copy_text(0, 0, 0, kCommitAndWait);
  unaligned = changed(unaligned, "stages = 1, offset = 0", "stages = 1, offset = 64");
  unaligned = changed(unaligned, "shared_bytes 2056", "shared_bytes 4104");
  unaligned = changed(unaligned, "offset = 2048", "offset = 4096");
  EXPECT_THAT(first_message(run(unaligned, {&plain.x, &plain.y})),
              HasSubstr("shared address 0x40 is not a multiple of 128"));
  const auto refusal = [&](const std::string& box, int swizzle) {
    std::string other = copy_text(128, 0, 0, kCommitAndWait);
    other = changed(other, "box = [16, 64], swizzle = 128",
                    fmt::format("box = {}, swizzle = {}", box, swizzle));
    other = changed(other, "shared_bytes 2056", "shared_bytes 8200");
    other = changed(other, "offset = 2048", "offset = 8192");
    other = changed(other, "1x16x64> = shared", "1x64x64> = shared");
    other = changed(other, "[16x64*2|16@0:128", "[64x64*2|64@0:128");
    CopyTensors wide(64);
    const MachineReport found = run(other, {&wide.x, &wide.y});
    return found.ok() ? "" : found.faults[0].kind + ": " + found.faults[0].message;
  };
  EXPECT_THAT(refusal("[16, 32]", 128), HasSubstr("rows of 64 bytes with a swizzle of 128"));
  EXPECT_THAT(refusal("[16, 60]", 0), HasSubstr("rows of 120 bytes, not a multiple of 16"));
  EXPECT_THAT(refusal("[257, 8]", 0), HasSubstr("a box of 257 elements on axis 0, not 1 to 256"));
  CopyTensors apart(64);
  apart.x.bytes.resize(2 * apart.x.bytes.size());  // for rows that lie further apart
  Arguments arguments;
  for (MachineTensor* tensor : {&apart.x, &apart.y})
    arguments.tensors.push_back(tensor->argument());
  arguments.tensors[0].strides[0] = 204;
  const std::string rows = copy_text(128, 0, 0, kCommitAndWait);
  const MachineReport strided = run_machine(ir::parse_text(rows, "kernel.tw"), arguments, {});
  EXPECT_THAT(first_message(strided), HasSubstr("a stride of 408 bytes, not a multiple of 16"));
  arguments.tensors[0] = apart.x.argument();
  arguments.tensors[0].data += 2;
  const MachineReport shifted = run_machine(ir::parse_text(rows, "kernel.tw"), arguments, {});
  EXPECT_THAT(first_message(shifted), HasSubstr("begins 2 bytes past a multiple of 16"));
}

// Each CTA of a cluster of two loads half of X and multicasts it to both; each stores all of X.
constexpr const char* kMulticast = R"(kernel "multicast" machine
in X: bf16[32, 64] = %0
out Y: bf16[128, 64] = %1
grid (4)
cluster 2
threads 32
shared_bytes 4104
body () {
  %5: tensor_map = tensor_map %0 {name = "X map", box = [16, 64], swizzle = 128}
  %6: tensor_map = tensor_map %1 {name = "Y map", box = [32, 64], swizzle = 128}
  %7: shared<bf16, 1x32x64> = shared {name = "tile", layout = shared_layout[32x64*2|32@0:128,64@1:2|x3.4.3], stages = 1, offset = 0}
  %8: mbarriers<1> = mbarriers {name = "full", arrivals = 1, offset = 4096}
  mbarrier_init %8 {arrivals = 1}
  fence_barrier_init
  cluster_sync
  %20: i32 = constant {value = 0}
  %21: i32 = constant {value = 16}
  %22: i32 = constant {value = 2048}
  %23: i32 = constant {value = 32}
  %24: i32 = cluster_rank
  %25: i32 = mul %24, %21
  %26: i32 = mul %24, %22
  mbarrier_expect_tx %8, %20 {bytes = 4096}
  tma_load %5, %7, %26, %8, %20, %20, %25 {bytes = 2048, multicast = 3}
  mbarrier_wait %8, %20, %20
  %28: i32 = cta_index
  %29: i32 = mul %28, %23
  tma_store %6, %7, %20, %20, %29
  bulk_commit
  bulk_wait {count = 0}
  cluster_sync
}
)";

// X has so many rows; row i of Y is to be that of X.
void expect_multicast(const std::string& text, int rows, const std::function<int(int)>& row_of) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    MachineTensor x("X", DType::bf16, {rows, 64}), y("Y", DType::bf16, {128, 64});
    x.randomise(5);
    const MachineReport report = run_seed(text, {&x, &y}, seed);
    ASSERT_TRUE(report.ok()) << first_message(report);
    for (int i = 0; i < 128; ++i) {
      for (int j = 0; j < 64; ++j) ASSERT_EQ(y.at(i, j), x.at(row_of(i), j));
    }
  }
}

TEST(MachineCluster, MulticastReachesBothBarriers) {
  expect_multicast(kMulticast, 32, [](int i) { return i % 32; });
}

// The same by a cluster of four, in two groups: `half` makes of the rank which half of the group's
// rows a CTA loads.
std::string multicast_by_four(const std::string& half, const std::string& group) {
  std::string text = changed(kMulticast, "bf16[32, 64] = %0", "bf16[64, 64] = %0");
  text = changed(text, "cluster 2", "cluster 4");
  text = changed(text, "  %26: i32 = mul %24, %22\n",
                 "  %27: i32 = constant {value = 2}\n  %31: i32 = " + half +
                     " %24, %27\n  %26: i32 = mul %31, %22\n");
  return changed(text, "multicast = 3}", group + "}");
}

// Each pair half of X.
TEST(MachineCluster, MulticastReachesItsGroupAlone) {
  expect_multicast(multicast_by_four("mod", "multicast = 3, multicast_group = 2"), 64,
                   [](int i) { return i / 64 * 32 + i % 32; });
}

// CTAs that are two apart, 0 and 2, and 1 and 3: 16 rows of either sender.
TEST(MachineCluster, MulticastReachesEverySecondCta) {
  expect_multicast(multicast_by_four("div", "multicast = 5, multicast_group = 4"), 64,
                   [](int i) { return i % 32 / 16 * 32 + i / 32 % 2 * 16 + i % 16; });
}

TEST(MachineCluster, CopyToAPeerThatHasEndedIsFound) {
  // Nobody waits for the copies.
  const std::string text = kMulticast;
  const std::size_t wait = text.find("  mbarrier_wait");
  MachineTensor x("X", DType::bf16, {32, 64}), y("Y", DType::bf16, {128, 64});
  x.randomise(5);
  EXPECT_THAT(kinds_of(text.substr(0, wait) + "}\n", {&x, &y}, 30), ::testing::Contains("exit"));
}

TEST(MachineForm, OtherFormsAreRefused) {
  EXPECT_THROW(run("kernel \"tile\" tile\ngrid (1)\nbody () {\n}\n", {}), Error);
}

}  // namespace
}  // namespace tilewright::simulator
