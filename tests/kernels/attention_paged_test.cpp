#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "common/error_text.h"
#include "compiler/compile_to_machine.h"
#include "ir/ir.h"
#include "ir/program.h"
#include "kernels/attention_paged_plan.h"
#include "kernels/one_multiprocessor.h"
#include "library/accuracy.h"
#include "library/program_simulation.h"
#include "tilewright/compile.h"
#include "tilewright/kernels/attention_paged.h"
#include "tilewright/library_executable.h"

// Attention to keys in pages. Every workload has a permuted table, NaN in slots and pages that no
// sequence uses, numbers that nobody may read behind a table's last pages, and a sequence without
// keys (kernels/registry_paged.cpp).
namespace tilewright {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using PagedSettings = std::vector<std::string>;

// Places of the tensors.
enum PagedTensor : std::size_t { kQ, kCuSeqlensQ, kLengths, kBlockTable, kK, kV, kO, kLSE };

library::Workload paged_workload(PagedSettings settings, const char* schedule = "tile") {
  settings.emplace_back("dim=64");
  settings.emplace_back(std::string("schedule=") + schedule);
  return library::make_workload(find_kernel("attention_paged"), settings, {}, 5);
}

void run_paged(library::Workload& work, const std::string& target) {
  std::vector<TensorRef> tensors;
  for (HostTensor& tensor : work.tensors) tensors.push_back(ref(tensor));
  compile(*work.kernel, work.options, target).run(tensors);
}

template <typename Action>
std::string paged_error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return test::without_source_lines(error.what());
  }
  return "no error was raised";
}

void expect_right_paged(const library::Workload& work) {
  const library::Comparison comparison = library::compare(work, library::reference_of(work));
  EXPECT_TRUE(comparison.ok()) << comparison.text();
}

// How the operation is run.
struct PagedForm {
  const char* target;
  const char* schedule;
};
constexpr PagedForm kPagedForms[] = {{"interpreter", "tile"},      {"cpu", "tile"},
                                     {"sim:sm_90a", "tile"},       {"sim:sm_90a", "sm90"},
                                     {"sim:sm_90a", "sm90_split"}, {"sim:sm_90a", "sm90_planned"},
                                     {"sim:sm_90a", "sm90_keys"},  {"sim:sm_90a", "sm90_chunks"}};
std::ostream& operator<<(std::ostream& out, const PagedForm& form) {
  return out << form.target << " schedule=" << form.schedule;
}

struct Paged {
  PagedForm form;
  PagedSettings settings;
};
std::ostream& operator<<(std::ostream& out, const Paged& each) {
  out << each.form;
  for (const std::string& setting : each.settings) out << " " << setting;
  return out;
}

class AttentionPaged : public testing::TestWithParam<Paged> {};

TEST_P(AttentionPaged, AgreesWithFloat64) {
  library::Workload work = paged_workload(GetParam().settings, GetParam().form.schedule);
  run_paged(work, GetParam().form.target);
  expect_right_paged(work);
}

// Each page size; groups of heads that fill no tile, and several tiles; dims apart; one query a
// sequence, several, none, and more than keys; every mask. Rows 16 and 18 of the faults that
// reviewers found: pages taken as neighbours, and tails of heads left out.
const PagedSettings kPagedCases[] = {
    {"page=1", "heads=4", "kv_heads=2", "max_pages=40", "pages=160"},
    {"page=1", "heads=3", "kv_heads=1", "max_pages=40", "pages=160", "lengths_q=9,3,0,20",
     "causal=true", "window=7", "sinks=true", "softcap=20"},
    {"page=16", "heads=5", "kv_heads=1", "max_pages=7"},
    {"page=32", "heads=70", "kv_heads=1", "max_pages=5", "dtype=f16"},
    {"page=64", "heads=6", "kv_heads=2", "max_pages=3", "lengths_q=1,7,0,40", "causal=true"},
    {"page=16", "heads=6", "kv_heads=2", "max_pages=9", "lengths_q=20,7,3,40", "causal=true",
     "window=40", "sinks=true", "softcap=2.5", "scale=0.3"},
    {"page=128", "heads=2", "max_pages=2", "dim_v=32"},
    {"page=256", "heads=4", "kv_heads=2", "max_pages=2", "batch=3", "pages=7"},
    {"page=24", "heads=2", "max_pages=3", "keys=70"},
};

std::vector<Paged> paged_cases() {
  std::vector<Paged> list;
  for (const char* target : {"interpreter", "cpu", "sim:sm_90a"}) {
    for (const PagedSettings& settings : kPagedCases) list.push_back({{target, "tile"}, settings});
  }
  const PagedSettings &many_heads = kPagedCases[3], &chunks = kPagedCases[4],
                      &everything = kPagedCases[5], &odd_pages = kPagedCases[8];
  for (const PagedSettings& settings : {many_heads, everything, odd_pages}) {
    list.push_back({{"sim:sm_90a", "sm90"}, settings});
  }
  for (const PagedSettings& settings : {chunks, everything}) {
    list.push_back({{"sim:sm_90a", "sm90_planned"}, settings});
  }
  list.push_back({{"sim:sm_90a", "sm90_split"}, chunks});
  list.push_back({{"sim:sm_90a", "sm90_keys"}, many_heads});
  // Pages too small for copies.
  list.push_back({{"sim:sm_90a", "sm90_keys"}, kPagedCases[0]});
  list.push_back({{"sim:sm_90a", "sm90_keys_planned"}, kPagedCases[1]});
  list.push_back({{"sim:sm_90a", "sm90_keys_split"}, odd_pages});
  list.push_back({{"sim:sm_90a", "sm90_keys_planned"}, everything});
  for (const PagedSettings& settings : {chunks, everything, odd_pages}) {
    list.push_back({{"sim:sm_90a", "sm90_chunks"}, settings});
  }
  // Of such rows fewer parts are joined at a time.
  list.push_back({{"sim:sm_90a", "tile"},
                  {"page=64", "heads=2", "kv_heads=1", "batch=1", "max_pages=2", "dim_v=256"}});
  list.push_back(
      {{"passes:sm_90a", "tile"}, {"page=16", "heads=5", "kv_heads=1", "batch=1", "max_pages=2"}});
  return list;
}
INSTANTIATE_TEST_SUITE_P(Sizes, AttentionPaged, testing::ValuesIn(paged_cases()));

const PagedSettings kSmallCache{"heads=4", "kv_heads=2", "max_pages=5", "pages=20"};

// {pages, kv_heads, page, dim} in memory: the launch's strides say so.
TEST(AttentionPagedTest, PagesMayHaveHeadBehindHead) {
  for (const PagedForm& form : kPagedForms) {
    SCOPED_TRACE(testing::PrintToString(form));
    library::Workload work = paged_workload(kSmallCache, form.schedule);
    std::vector<HostTensor> turned;
    for (const std::size_t cache : {kK, kV}) {
      const HostTensor& from = work.tensors[cache];
      const std::vector<std::int64_t> shape = from.shape();
      HostTensor to = HostTensor::zeros(from.dtype(), {shape[0], shape[2], shape[1], shape[3]});
      for (std::int64_t i = 0; i < from.elements(); ++i) {
        const std::int64_t d = i % shape[3], row = i / shape[3];
        const std::int64_t h = row % shape[2], slot = row / shape[2] % shape[1];
        to.set({row / shape[2] / shape[1], h, slot, d}, from.flat(i));
      }
      turned.push_back(std::move(to));
    }
    std::vector<TensorRef> tensors;
    for (HostTensor& tensor : work.tensors) tensors.push_back(ref(tensor));
    for (const std::size_t cache : {kK, kV}) {
      const std::vector<std::int64_t> strides = turned[cache - kK].strides();
      tensors[cache].data = turned[cache - kK].data();
      tensors[cache].strides = {strides[0], strides[2], strides[1], strides[3]};
    }
    compile(*work.kernel, work.options, form.target).run(tensors);
    expect_right_paged(work);
  }
}

// Keys of no page are hidden, wherever they are; of a sequence without any page all are.
TEST(AttentionPagedTest, HolesInTheTable) {
  for (const PagedForm& form : kPagedForms) {
    SCOPED_TRACE(testing::PrintToString(form));
    library::Workload work = paged_workload(kSmallCache, form.schedule);
    HostTensor& table = work.tensors[kBlockTable];
    table.set({0, 0}, -1);
    table.set({0, 3}, -1);
    for (std::int64_t column = 0; column < 5; ++column) table.set({3, column}, -1);
    ASSERT_GT(work.tensors[kLengths].flat(3), 0);
    run_paged(work, form.target);
    expect_right_paged(work);
    EXPECT_EQ(work.tensors[kO].at({3, 1, 5}), 0);
    EXPECT_EQ(work.tensors[kLSE].at({3, 1}), -std::numeric_limits<double>::infinity());
  }
}

// Of pages whose keys go one by one.
TEST(AttentionPagedTest, HolesAmongSmallPages) {
  for (const char* target : {"interpreter", "cpu", "sim:sm_90a"}) {
    for (const char* page : {"page=1", "page=5"}) {
      SCOPED_TRACE(testing::Message() << target << " " << page);
      library::Workload work =
          paged_workload({page, "heads=4", "kv_heads=2", "batch=2", "max_pages=8", "pages=19",
                          "keys=8", "lengths_q=1,2", "causal=true"},
                         "tile");
      HostTensor& table = work.tensors[kBlockTable];
      table.set({0, 0}, -1);
      table.set({0, 1}, page[5] == '1' ? -1 : table.at({0, 1}));
      for (std::int64_t column = 0; column < 8; ++column) table.set({1, column}, -1);
      run_paged(work, target);
      expect_right_paged(work);
      EXPECT_EQ(work.tensors[kO].at({1, 1, 5}), 0);
      EXPECT_EQ(work.tensors[kLSE].at({1, 1}), -std::numeric_limits<double>::infinity());
    }
  }
}

// As many of a stage as a number has bits, and more.
TEST(AttentionPagedTest, HolesAmongGatheredPages) {
  for (const char* page : {"page=1", "page=4"}) {
    SCOPED_TRACE(page);
    library::Workload work = paged_workload(
        {page, "heads=4", "kv_heads=2", "batch=2", "max_pages=70", "pages=140", "keys=67"},
        "sm90_keys");
    for (const std::int64_t column : {0, 2, 31, 32, 40, 63, 66}) {
      work.tensors[kBlockTable].set({0, column % (page[5] == '1' ? 67 : 17)}, -1);
    }
    run_paged(work, "sim:sm_90a");
    expect_right_paged(work);
    work.tensors[kBlockTable].set({1, 5}, 140);
    EXPECT_THAT(paged_error_of([&] { run_paged(work, "sim:sm_90a"); }),
                HasSubstr("index 140 on axis 0 of K"));
  }
}

// Servers give pages in front of a window to others, and leave their numbers in the table.
TEST(AttentionPagedTest, PagesInFrontOfAWindowAreNotRead) {
  for (const PagedForm& form : kPagedForms) {
    SCOPED_TRACE(testing::PrintToString(form));
    library::Workload work =
        paged_workload({"heads=4", "kv_heads=2", "max_pages=16", "pages=34", "batch=2", "keys=250",
                        "lengths_q=1,4", "causal=true", "window=40"},
                       form.schedule);
    const library::Reference reference = library::reference_of(work);
    // The first keys that anyone sees are 210 and 207: page 13 of the one, and 12 of the other.
    HostTensor& table = work.tensors[kBlockTable];
    for (const std::int64_t b : {0, 1}) {
      for (std::int64_t column = 0; column < 13 - b; ++column) {
        const auto page = static_cast<std::int64_t>(table.at({b, column}));
        for (const std::size_t cache : {kK, kV}) {
          for (std::int64_t slot = 0; slot < 16; ++slot) {
            work.tensors[cache].set({page, slot, 1, 7}, std::nan(""));
          }
        }
        table.set({b, column}, 1 << 20);
      }
    }
    run_paged(work, form.target);
    const library::Comparison comparison = library::compare(work, reference);
    EXPECT_TRUE(comparison.ok()) << comparison.text();
  }
}

TEST(AttentionPagedTest, WithoutKeysTheResultIsZero) {
  library::Workload work = paged_workload(kSmallCache);
  ASSERT_EQ(work.tensors[kLengths].flat(2), 0);
  run_paged(work, "interpreter");
  EXPECT_EQ(work.tensors[kO].at({2, 3, 63}), 0);
  EXPECT_EQ(work.tensors[kLSE].at({2, 3}), -std::numeric_limits<double>::infinity());
}

// A few multiprocessors have many items each, one after the other, and begin anew in each run.
TEST(AttentionPagedTest, SeveralItemsOfALane) {
  for (const char* schedule : {"sm90", "sm90_split", "sm90_planned", "sm90_keys"}) {
    SCOPED_TRACE(schedule);
    library::ProgramWorkload work;
    work.workload = paged_workload(kSmallCache, schedule);
    test::simulate_on_one_multiprocessor(work);
    expect_right_paged(work.workload);
  }
}

// Sinks far above every score leave nothing of the values.
TEST(AttentionPagedTest, SinksAboveAllScores) {
  for (const PagedForm& form : kPagedForms) {
    SCOPED_TRACE(testing::PrintToString(form));
    PagedSettings settings = kSmallCache;
    settings.emplace_back("sinks=true");
    library::Workload work = paged_workload(settings, form.schedule);
    HostTensor& sinks = work.tensors.back();
    for (std::int64_t i = 0; i < sinks.elements(); ++i) sinks.set_flat(i, 300);
    run_paged(work, form.target);
    EXPECT_EQ(work.tensors[kO].at({0, 1, 5}), 0);
    EXPECT_NEAR(work.tensors[kLSE].at({0, 1}), 300, 0.01);
  }
}

// Queries that pad a batch are neither read nor written.
TEST(AttentionPagedTest, QueriesOfNoSequence) {
  for (const PagedForm& form : kPagedForms) {
    SCOPED_TRACE(testing::PrintToString(form));
    PagedSettings settings = kSmallCache;
    settings.emplace_back("queries=9");
    library::Workload work = paged_workload(settings, form.schedule);
    work.tensors[kCuSeqlensQ] = HostTensor::from_values(i32, {5}, {1, 3, 4, 4, 6});
    HostTensor& queries = work.tensors[kQ];
    const std::int64_t row = 4 * 64;
    for (std::int64_t i = 0; i < queries.elements(); ++i) {
      if (i / row == 0 || i / row >= 6) queries.set_flat(i, std::nan(""));
    }
    const auto reference = library::reference_of(work).values;
    // Not NaN, which scratch memory holds: it shows where that is copied.
    constexpr double kKept = 77;
    for (const std::size_t output : {kO, kLSE}) {
      HostTensor& tensor = work.tensors[output];
      for (std::int64_t i = 0; i < tensor.elements(); ++i) tensor.set_flat(i, kKept);
    }
    run_paged(work, form.target);
    double worst = 0;
    for (std::int64_t i = 0; i < work.tensors[kO].elements(); ++i) {
      const double got = work.tensors[kO].flat(i), wanted = reference[0][std::size_t(i)];
      ASSERT_EQ(got == kKept, std::isnan(wanted)) << i / row;
      if (got != kKept) worst = std::max(worst, std::abs(got - wanted));
    }
    EXPECT_LT(worst, 2e-2);
    EXPECT_EQ(work.tensors[kLSE].at({0, 0}), kKept);
    EXPECT_EQ(work.tensors[kLSE].at({6, 3}), kKept);
    EXPECT_TRUE(std::isfinite(work.tensors[kLSE].at({5, 3})));
  }
}

// Nor those of a batch without sequences.
TEST(AttentionPagedTest, NoSequence) {
  kernels::PagedAttention a;
  a.heads = 4;
  a.kv_heads = 2;
  a.dim = a.dim_v = 64;
  for (const Program& program : {kernels::attention_paged_sm90(a, kernels::KeyParts::several),
                                 kernels::attention_paged_sm90(a, kernels::KeyParts::planned)}) {
    HostTensor queries = HostTensor::poisoned(bf16, {3, 4, 64});
    HostTensor begins = HostTensor::zeros(i32, {1}), lengths = HostTensor::zeros(i32, {0});
    HostTensor table = HostTensor::zeros(i32, {0, 2});
    HostTensor cache = HostTensor::poisoned(bf16, {1, 16, 2, 64});
    HostTensor output = HostTensor::zeros(bf16, {3, 4, 64}), sums = HostTensor::zeros(f32, {3, 4});
    compile(program, "sim:sm_90a")
        .run({ref(queries), ref(begins), ref(lengths), ref(table), ref(cache), ref(cache),
              ref(output), ref(sums)});
    EXPECT_EQ(output, HostTensor::zeros(bf16, {3, 4, 64}));
    EXPECT_EQ(sums, HostTensor::zeros(f32, {3, 4}));
  }
}

// -1 is no page. Any other number outside of the cache is a fault, and so is a sequence longer than
// its row of the table.
TEST(AttentionPagedTest, NumbersThatAreNoPage) {
  for (const PagedForm& form : kPagedForms) {
    SCOPED_TRACE(testing::PrintToString(form));
    const bool is_fast = std::string(form.target) == "interpreter";
    for (const int page : is_fast ? std::vector<int>{20, 1 << 30, -2} : std::vector<int>{20}) {
      library::Workload work = paged_workload(kSmallCache, form.schedule);
      work.tensors[kBlockTable].set({0, 2}, page);
      EXPECT_THAT(paged_error_of([&] { run_paged(work, form.target); }),
                  AllOf(HasSubstr("kernels/attention_"),
                        AnyOf(HasSubstr("index " + std::to_string(page) + " on axis 0 of K"),
                              HasSubstr("index " + std::to_string(page) + " on axis 0 of V"))));
    }
  }
  library::Workload work = paged_workload(kSmallCache);
  work.tensors[kLengths].set({0}, 5 * 16 + 1);
  EXPECT_THAT(paged_error_of([&] { run_paged(work, "interpreter"); }),
              AllOf(HasSubstr("kernels/attention_paged"),
                    HasSubstr("element {0, 5} is outside block_table")));
}

// Row 19: the queries are loaded once, before the loop over pages.
TEST(AttentionPagedTest, QueriesAreLoadedOutsideOfTheLoop) {
  kernels::PagedAttention a;
  a.heads = 8;
  a.kv_heads = 2;
  const Program program = kernels::attention_paged(a);
  const ir::Kernel machine =
      compiler::compile_to_machine(*program.finish().kernels[0], "sm_90a").kernel;
  std::vector<bool> loads_in_loops;
  const auto visit = [&](const auto& self, const ir::Block& block, bool in_loop) -> void {
    for (const ir::Operation& o : block.body) {
      const bool is_load = o.op == ir::Op::load_registers || o.op == ir::Op::tma_load;
      for (const ir::ValueId operand : o.operands) {
        const ir::Parameter* tensor = is_load ? machine.parameter_of(operand) : nullptr;
        if (tensor && tensor->name == "Q") loads_in_loops.push_back(in_loop);
      }
      for (const ir::Block& inner : o.blocks)
        self(self, inner, in_loop || o.op == ir::Op::for_loop);
    }
  };
  visit(visit, machine.body, false);
  EXPECT_THAT(loads_in_loops, testing::ElementsAre(false));
}

// A tile's items are alike, none has much more than a place's share of the blocks, and there is
// room for all of them.
TEST(AttentionPagedTest, APlanDividesKeysByLength) {
  kernels::PagedAttention a;
  a.heads = 8;
  a.kv_heads = 2;
  const kernels::PagedRows tile(a, 64);  // 16 queries
  // 250 sequences of one query, which take several steps; some long, some empty, one of 40 queries.
  constexpr std::int64_t kBatch = 250, kPlaces = 50;
  std::vector<double> offsets{0}, lengths;
  std::vector<std::int64_t> tiles, blocks;
  std::int64_t all_blocks = 0;
  for (std::int64_t b = 0; b < kBatch; ++b) {
    const std::int64_t queries = b == 3 ? 40 : b == 5 ? 0 : 1;
    offsets.push_back(offsets.back() + static_cast<double>(queries));
    lengths.push_back(static_cast<double>(b % 50 == 0 ? 5000 + b : b % 7 == 0 ? 0 : 60 + b));
    tiles.push_back((queries + 15) / 16);
    blocks.push_back((static_cast<std::int64_t>(lengths.back()) + 63) / 64);
    all_blocks += tiles.back() * blocks.back();
  }
  HostTensor cu_seqlens_q = HostTensor::from_values(i32, {kBatch + 1}, offsets);
  HostTensor of_keys = HostTensor::from_values(i32, {kBatch}, lengths);
  HostTensor plan = HostTensor::poisoned(i32, {kBatch + 1});
  compile(kernels::plan_kernel(a, tile), "interpreter")
      .run({ref(cu_seqlens_q), ref(of_keys), ref(plan)}, {kPlaces});
  ASSERT_EQ(plan.flat(0), 0);
  for (std::int64_t b = 0; b < kBatch; ++b) {
    const auto at = static_cast<std::size_t>(b);
    const auto items = static_cast<std::int64_t>(plan.flat(b + 1) - plan.flat(b));
    ASSERT_EQ(items % std::max<std::int64_t>(tiles[at], 1), 0) << b;
    if (tiles[at] == 0) continue;
    ASSERT_GT(items, 0) << b;
    EXPECT_LE(kPlaces * blocks[at] * tiles[at], (all_blocks + kPlaces) * items) << b;
  }
  const auto items = static_cast<std::int64_t>(plan.flat(kBatch));
  // As many places of each head of two.
  Program program("shapes");
  const kernels::PagedShapes shapes(program, a);
  const auto evaluated = [&](const Dim& dim) {
    return dim.evaluate([&](const std::string& name) {
      return name == "batch" ? kBatch : static_cast<std::int64_t>(offsets.back());
    });
  };
  const Dim places(2 * kPlaces);
  ASSERT_EQ(evaluated(kernels::places_of_head(a.kv_heads, tile, places)), kPlaces);
  EXPECT_LE(items, evaluated(kernels::most_items(shapes, tile, places)));
}

// Row 20: a table that became zeros, or kept its order, would hide what these tests look for.
TEST(AttentionPagedTest, TablesAreShuffled) {
  const library::Workload work = paged_workload(kSmallCache);
  std::set<double> pages;
  int neighbours = 0, used = 0;
  for (std::int64_t b = 0; b < 4; ++b) {
    for (std::int64_t column = 0; column * 16 < work.tensors[kLengths].flat(b); ++column) {
      const double page = work.tensors[kBlockTable].at({b, column});
      pages.insert(page);
      ++used;
      if (column > 0) neighbours += page == work.tensors[kBlockTable].at({b, column - 1}) + 1;
    }
  }
  EXPECT_GE(used, 8);
  // The first sequence lacks a page.
  const auto first = static_cast<std::int64_t>(work.tensors[kLengths].flat(0));
  EXPECT_EQ(work.tensors[kBlockTable].at({0, (first + 15) / 16 - 2}), -1);
  pages.erase(-1);
  EXPECT_EQ(pages.size(), static_cast<std::size_t>(used - 1));
  EXPECT_LE(4 * neighbours, used);
  // A page that no sequence has, and a slot behind the last key.
  std::size_t unused = 0;
  for (std::int64_t page = 0; page < 20; ++page) {
    unused += std::isnan(work.tensors[kK].at({page, 0, 0, 0}));
  }
  EXPECT_EQ(unused, 20 - pages.size());
}

// Every schedule has a form that checks itself (--checked). Of queries that begin in front of their
// tensor it says so where it reads their offset.
TEST(AttentionPagedTest, ChecksItself) {
  compiler::MachineOptions how;
  how.checked = true;
  for (const char* schedule : {"sm90", "sm90_split", "sm90_planned", "sm90_chunks"}) {
    for (const bool is_wrong : {false, true}) {
      SCOPED_TRACE(std::string(schedule) + (is_wrong ? ", wrong" : ""));
      PagedSettings settings = kSmallCache;
      settings.emplace_back("queries=6");
      library::ProgramWorkload work;
      work.workload = paged_workload(settings, schedule);
      if (is_wrong) {
        work.workload.tensors[kCuSeqlensQ] = HostTensor::from_values(i32, {5}, {0, -5, 4, 5, 6});
      }
      const ir::Program recorded =
          build_program(*work.workload.kernel,
                        choose_schedule(*work.workload.kernel, work.workload.options, "sm_90a"))
              .finish();
      const std::vector<ir::Kernel> machine =
          library::machine_forms(recorded, "sm_90a", how).front();
      simulator::MachineOptions options;
      options.multiprocessors = options.resident = 2;
      work.program = library::bind_workload(recorded, work.workload, options.multiprocessors);
      ir::add_owned(work.program, machine);
      library::ProgramTensors after;
      const simulator::MachineReport report =
          library::simulate_program(work.program, machine, work.before(), &after, options, 1);
      ASSERT_EQ(report.ok(), !is_wrong);
      if (!is_wrong) continue;
      EXPECT_THAT(report.faults[0].message,
                  AllOf(HasSubstr("cu_seqlens_q gives -5, and may give 0 to 6 there"),
                        HasSubstr("\n  check")));
    }
  }
}

// As of packed sequences, whose rows must be there.
TEST(AttentionPagedTest, OffsetsThatLeadOutsideAreRefused) {
  library::Workload work = paged_workload(kSmallCache);
  work.tensors[kCuSeqlensQ] = HostTensor::from_values(i32, {5}, {0, 1, 900, 901, 902});
  EXPECT_THAT(test::usage_error_of([&] { library::reference_of(work); }),
              HasSubstr("cu_seqlens_q gives a sequence rows 1 to 899, and there are 4"));
}

TEST(AttentionPagedTest, WhatItRefuses) {
  kernels::PagedAttention a;
  const auto refused = [&] { return test::usage_error_of([&] { kernels::attention_paged(a); }); };
  a.page = 0;
  EXPECT_THAT(refused(), HasSubstr("page is 0"));
  a.page = 16;
  a.kv_heads = 3;
  EXPECT_THAT(refused(), HasSubstr("heads 8 is not a multiple of kv_heads 3"));
  EXPECT_THAT(test::usage_error_of([&] { kernels::attention_paged_chunks_sm90(a); }),
              HasSubstr("heads 8 is not a multiple of kv_heads 3"));
  EXPECT_THAT(test::usage_error_of([] {
                library::Workload work = paged_workload({"page=12", "max_pages=3"}, "sm90");
                run_paged(work, "sim:sm_90a");
              }),
              AllOf(HasSubstr("page is 12"), HasSubstr("a multiple of 8 slots")));
  EXPECT_THAT(test::usage_error_of([] {
                paged_workload({"max_pages=2", "keys=33"});
              }),
              HasSubstr("keys is 33, and the table has room for max_pages * page = 32"));
  EXPECT_THAT(test::usage_error_of([] {
                library::make_workload(find_kernel("attention_paged"), {"dim=64", "max_pages=2"},
                                       {{"lengths", "uniform:33:34"}}, 5);
              }),
              HasSubstr("lengths gives sequence 0 33 keys, and its row of block_table has no page "
                        "2 of it"));
}

}  // namespace
}  // namespace tilewright
