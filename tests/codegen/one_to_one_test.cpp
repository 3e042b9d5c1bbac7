#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "check/fuzz/recipe.h"
#include "codegen/cuda/cuda_printer.h"
#include "codegen/example_kernels.h"
#include "codegen/machine_text.h"
#include "compiler/compile_to_machine.h"
#include "ir/program.h"
#include "ir/text.h"
#include "tilewright/library.h"

// Every synchronisation, copy and product that is printed stands in the machine form, and the other
// way round. What is printed is counted in the text, without the tables of the printer.
namespace tilewright::codegen {
namespace {

using ir::Op;

// Operations, and how the calls begin by which they show in the body of the printed kernel.
struct Row {
  std::vector<Op> operations;
  std::vector<std::string_view> calls;
  // Of PTX, in what is called so; empty for loads and stores of threads, and for what C++ has.
  std::string_view instruction = {};
};

const Row kRows[] = {
    {{Op::warp_sync}, {"__syncwarp("}},
    {{Op::cta_sync}, {"__syncthreads("}},
    {{Op::cluster_sync}, {"cluster_sync("}, "barrier.cluster."},
    {{Op::named_sync}, {"named_sync<", "named_sync_"}, "bar.sync"},
    {{Op::named_arrive}, {"named_arrive<", "named_arrive_"}, "bar.arrive"},
    {{Op::mbarrier_init}, {"mbarrier_init("}, "mbarrier.init."},
    {{Op::mbarrier_expect_tx}, {"mbarrier_expect_tx("}, "mbarrier.arrive.expect_tx."},
    {{Op::mbarrier_arrive},
     {"mbarrier_arrive(", "mbarrier_arrive_remote("},
     "mbarrier.arrive.shared::"},
    {{Op::mbarrier_wait}, {"mbarrier_wait(", "mbarrier_wait_watched("}, "mbarrier.try_wait."},
    {{Op::fence_barrier_init}, {"fence_barrier_init("}, "fence.mbarrier_init."},
    {{Op::fence_proxy_async}, {"fence_proxy_async("}, "fence.proxy.async.shared"},
    {{Op::fence_proxy_async_global}, {"fence_proxy_async_global("}, "fence.proxy.async.global"},
    {{Op::fence_cluster}, {"fence_cluster("}, "fence.acq_rel."},
    {{Op::fence}, {"fence_acq_rel_"}, "fence.acq_rel."},
    {{Op::bulk_commit}, {"bulk_commit("}, "cp.async.bulk.commit_group"},
    {{Op::bulk_wait}, {"bulk_wait<", "bulk_wait_read<"}, "cp.async.bulk.wait_group"},
    {{Op::set_max_registers}, {"increase_registers<", "decrease_registers<"}, "setmaxnreg."},
    {{Op::check}, {"stop_at_check(", "report_wait("}, "trap"},  // the latter in watched waits alone
    {{Op::prefetch_map}, {"prefetch_map("}, "prefetch.tensormap"},
    {{Op::tma_load}, {"tma_load_"}, "cp.async.bulk.tensor."},
    {{Op::cluster_copy}, {"cluster_copy("}, "cp.async.bulk.shared::cluster."},
    {{Op::tma_store}, {"tma_store_"}, "cp.async.bulk.tensor."},
    {{Op::tma_reduce}, {"tma_reduce_"}, "cp.reduce.async.bulk.tensor."},
    {{Op::wgmma_ss}, {"wgmma_ss_"}, "wgmma.mma_async."},
    {{Op::wgmma_rs}, {"wgmma_rs_"}, "wgmma.mma_async."},
    {{Op::wgmma_fence}, {"wgmma_fence("}, "wgmma.fence."},
    {{Op::wgmma_commit}, {"wgmma_commit("}, "wgmma.commit_group."},
    {{Op::wgmma_wait}, {"wgmma_wait<"}, "wgmma.wait_group."},
    {{Op::tcgen05_alloc}, {"tcgen05_alloc<", "tcgen05_alloc_pair<"}, "tcgen05.alloc."},
    {{Op::tcgen05_dealloc}, {"tcgen05_dealloc<", "tcgen05_dealloc_pair<"}, "tcgen05.dealloc."},
    {{Op::tcgen05_relinquish},
     {"tcgen05_relinquish(", "tcgen05_relinquish_pair("},
     "tcgen05.relinquish_alloc_permit."},
    {{Op::try_cancel}, {"try_cancel(", "try_cancel_cluster("}, "clusterlaunchcontrol.try_cancel."},
    {{Op::query_cancel}, {"query_cancel("}, "clusterlaunchcontrol.query_cancel.is_canceled."},
    {{Op::tcgen05_mma_ss}, {"tcgen05_mma_ss_"}, "tcgen05.mma."},
    {{Op::tcgen05_mma_ts}, {"tcgen05_mma_ts_"}, "tcgen05.mma."},
    {{Op::tcgen05_commit},
     {"tcgen05_commit(", "tcgen05_commit_pair(", "tcgen05_commit_multicast_pair("},
     "tcgen05.commit."},
    {{Op::tcgen05_cp}, {"tcgen05_cp_"}, "tcgen05.cp."},
    {{Op::tcgen05_shift}, {"tcgen05_shift("}, "tcgen05.shift."},
    {{Op::tcgen05_ld}, {"tcgen05_ld_x", "tcgen05_ld_16x256b_x"}, "tcgen05.ld."},
    {{Op::tcgen05_st}, {"tcgen05_st_x", "tcgen05_st_16x128b_x"}, "tcgen05.st."},
    {{Op::tcgen05_wait_ld}, {"tcgen05_wait_ld("}, "tcgen05.wait::ld."},
    {{Op::tcgen05_wait_st}, {"tcgen05_wait_st("}, "tcgen05.wait::st."},
    {{Op::tcgen05_fence_before}, {"tcgen05_fence_before("}, "tcgen05.fence::before"},
    {{Op::tcgen05_fence_after}, {"tcgen05_fence_after("}, "tcgen05.fence::after"},
    {{Op::load_matrix}, {"ldmatrix_"}, "ldmatrix."},
    {{Op::store_matrix}, {"stmatrix_"}, "stmatrix."},
    {{Op::load_words}, {"load_words(", "load_words_cluster("}},
    {{Op::store_words}, {"store_words("}},
    {{Op::load_elements}, {"load_shared(address", "load_shared_"}},
    {{Op::store_elements}, {"store_shared(address", "store_shared_"}},
    {{Op::shared_load}, {"load_shared("}},
    {{Op::shared_store}, {"store_shared("}},
    {{Op::atomic_add}, {"atomic_add"}},
    {{Op::reduce_add}, {"reduce_add_"}},
    {{Op::store_index}, {"store_weak(", "store_relaxed_", "store_release_"}},
    {{Op::load_index}, {"*(", "load_relaxed_", "load_acquire_"}},
    {{Op::wait_flag}, {"wait_flag_"}},
    {{Op::load_registers, Op::store_registers, Op::red_registers, Op::atomic_registers},
     {"* const first ="}},
};

// The row that says most of how the call begins; null for arithmetic.
const Row* row_of(const std::string& call) {
  static std::map<std::string, const Row*> known;
  const auto [entry, fresh] = known.emplace(call, nullptr);
  if (!fresh) return entry->second;
  std::size_t length = 0;
  for (const Row& row : kRows) {
    for (const std::string_view begin : row.calls) {
      if (begin.size() <= length || call.compare(0, begin.size(), begin) != 0) continue;
      entry->second = &row;
      length = begin.size();
    }
  }
  return entry->second;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

using Visit = std::function<void(const std::string& call, std::size_t at)>;

// The word at the start and the bracket behind it; the type of load_shared<type> is passed over,
// and an argument of the name "address" belongs to the call. The end of the word.
std::size_t visit_word(std::string_view text, std::size_t start, const Visit& visit) {
  std::size_t end = start;
  while (is_word(text[end])) ++end;
  const std::size_t behind = end;
  std::string call(text.substr(start, end - start));
  if (call == "load_shared" && text[end] == '<') end = text.find('>', end) + 1;
  if (text[end] != '(' && text[end] != '<') return behind;
  call += text[end];
  const std::string_view argument = text.substr(end + 1, 8);
  if (argument.substr(0, 7) == "address" && !is_word(argument[7])) call += "address";
  visit(call, start);
  return behind;
}

// What the body calls, in its order; "*(" where an index is loaded, "* const first =" for accesses
// to a tensor.
void for_each_call(std::string_view body, const Visit& visit) {
  const auto stands = [&](std::size_t at, std::string_view what) {
    return body.substr(at, what.size()) == what;
  };
  for (std::size_t at = 0; at < body.size();) {
    if (is_word(body[at])) {
      at = visit_word(body, at, visit);
      continue;
    }
    if (body[at] == '/' && stands(at, "//")) at = body.find('\n', at);
    if ((body[at] == '=' && stands(at, "= *(")) || (body[at] == ',' && stands(at, ", *("))) {
      visit("*(", at);
    }
    if (body[at] == '*' && stands(at, "* const first =")) visit("* const first =", at);
    ++at;
  }
}

std::size_t body_of(std::string_view text) { return text.find("extern \"C\""); }

std::map<const Row*, int> printed_in(std::string_view text) {
  std::map<const Row*, int> found;
  for_each_call(text.substr(body_of(text)), [&](const std::string& call, std::size_t) {
    if (const Row* row = row_of(call)) ++found[row];
  });
  return found;
}

std::map<const Row*, int> standing_in(const ir::Kernel& machine) {
  std::map<const Row*, int> found;
  ir::for_each(machine.body, [&](const ir::Operation& o) {
    for (const Row& row : kRows) {
      for (const Op op : row.operations) found[&row] += op == o.op;
    }
  });
  return found;
}

// A line for each row in which the two differ.
std::string difference(const ir::Kernel& machine, std::string_view text) {
  std::map<const Row*, int> printed = printed_in(text), standing = standing_in(machine);
  std::string lines;
  for (const Row& row : kRows) {
    if (printed[&row] == standing[&row]) continue;
    lines += fmt::format("{}: {} in the machine form, {} printed\n",
                         ir::info(row.operations[0]).name, standing[&row], printed[&row]);
  }
  return lines;
}

// Names of functions in front of the kernel, with their text.
std::vector<std::pair<std::string, std::string_view>> functions_of(std::string_view text) {
  constexpr std::string_view kHead = "__device__ __forceinline__ ";
  std::vector<std::pair<std::string, std::string_view>> functions;
  const std::string_view prelude = text.substr(0, body_of(text));
  for (std::size_t at = prelude.find(kHead); at != std::string_view::npos;) {
    const std::size_t next = prelude.find(kHead, at + 1);
    const std::string_view function = prelude.substr(at, next - at);
    std::size_t end = function.find('('), begin = end;
    while (is_word(function[begin - 1])) --begin;
    functions.emplace_back(function.substr(begin, end - begin), function);
    at = next;
  }
  return functions;
}

// A function that stands for an operation has its instruction, and none has that of another one.
std::string misplaced_instructions(std::string_view text) {
  std::string lines;
  for (const auto& [name, function] : functions_of(text)) {
    const Row* row = row_of(name + "(");
    if (!row) row = row_of(name + "<");
    const std::string_view own = row ? row->instruction : std::string_view();
    for (const Row& other : kRows) {
      const std::string_view instruction = other.instruction;
      if (instruction.empty()) continue;
      const bool has = function.find(instruction) != std::string_view::npos;
      if (has != (instruction == own)) {
        lines += fmt::format("{} {} {}\n", name, has ? "has" : "lacks", instruction);
      }
    }
  }
  return lines;
}

// What else meets, fences or hides instructions in the body.
std::string unknown_in(std::string_view text) {
  const std::string_view body = text.substr(body_of(text));
  std::string lines;
  for (const char* word : {"asm ", "__threadfence", "__sync", "__nanosleep", "__pipeline"}) {
    for (std::size_t at = body.find(word); at != std::string_view::npos;
         at = body.find(word, at + 1)) {
      const std::string_view rest = body.substr(at, 14);
      if (rest.substr(0, 11) == "__syncwarp(" || rest == "__syncthreads(") continue;
      lines += fmt::format("{}\n", rest);
    }
  }
  return lines;
}

struct Count {
  int kernels = 0, refused = 0;
};

void expect_one_to_one(const ir::Kernel& machine) {
  const std::string text = print_cuda(machine).text;
  EXPECT_EQ(difference(machine, text) + misplaced_instructions(text) + unknown_in(text), "");
}

void expect_one_to_one(const Kernel& kernel, Count& count) {
  ir::Kernel machine;
  try {
    machine = compiler::compile_to_machine(kernel.finish(), ir::default_target()).kernel;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    ++count.refused;
    return;
  }
  ++count.kernels;
  expect_one_to_one(machine);
}

void expect_library_kernel(const LibraryKernel& entry, const std::vector<std::string>& settings,
                           Count& count) {
  SCOPED_TRACE(fmt::format("{} {}", entry.name, fmt::join(settings, " ")));
  const ScheduleChoice choice = choose_schedule(entry, resolve_options(entry, settings), "sm_90a");
  if (!entry.is_program()) return expect_one_to_one(build_choice(entry, choice), count);
  const Program program = build_program(entry, choice);
  for (const auto& kernel : program.finish().kernels) {
    ++count.kernels;
    expect_one_to_one(compiler::compile_to_machine(*kernel, ir::default_target()).kernel);
  }
}

TEST(OneToOne, EveryOperationOutsideOfRegistersIsCounted) {
  for (int i = 0; i <= static_cast<int>(Op::set_max_registers); ++i) {
    const auto op = static_cast<Op>(i);
    const ir::OpInfo& record = ir::info(op);
    bool outside = record.synchronises || record.touches(ir::Memory::barrier, ir::Proxy::generic);
    for (const ir::Memory memory : {ir::Memory::global, ir::Memory::shared, ir::Memory::tensor}) {
      outside = outside || record.reads(memory) || record.writes(memory);
    }
    if (!outside || !record.in(ir::Form::machine)) continue;
    if (record.agent == ir::Agent::sequencer) continue;  // a core's, which nothing prints
    bool counted = false;
    for (const Row& row : kRows) {
      for (const Op known : row.operations) counted = counted || known == op;
    }
    EXPECT_TRUE(counted) << record.name;
  }
}

TEST(OneToOne, SamplesOfEveryOperation) {
  for (const MachineSample& sample : machine_samples()) {
    SCOPED_TRACE(sample.name);
    expect_one_to_one(ir::parse_text(sample.text, "kernel.tw"));
  }
}

TEST(OneToOne, AttentionOfTheLibrary) {
  const std::vector<std::vector<std::string>> options = {
      {},
      {"causal=true", "dim=128"},
      {"causal=true", "window=100", "kv_heads=2"},
      {"dim=256", "sinks=true"},
      {"dim=96", "softcap=30", "dtype=f16"},
      {"dim=192", "dim_v=128", "causal=true"},
  };
  Count count;
  for (const char* name : {"attention_forward", "attention_varlen_forward"}) {
    const LibraryKernel& entry = find_kernel(name);
    for (std::vector<std::string> settings : options) {
      settings.push_back("schedule=tile");
      expect_library_kernel(entry, settings, count);
      const auto has = [&settings](const char* setting) {
        return std::count(settings.begin(), settings.end(), setting) > 0;
      };
      const bool has_window = has("window=100"), is_wide = has("dim=256") || has("dim=192");
      for (const LibrarySchedule& schedule : entry.schedules) {
        if (schedule.target != "sm_90a") continue;
        // Both refuse windows, and parts wide dims.
        if (has_window && schedule.name == "sm90_pairs") continue;
        if ((has_window || is_wide) && schedule.name == "sm90_parts") continue;
        settings.back() = "schedule=" + schedule.name;
        expect_library_kernel(entry, settings, count);
      }
    }
  }
  EXPECT_EQ(count.refused, 0);
}

TEST(OneToOne, GemmOfTheLibrary) {
  Count count;
  for (const LibraryKernel& entry : kernel_library()) {
    if (entry.name.find("attention") != std::string::npos) continue;
    expect_library_kernel(entry, {"schedule=tile"}, count);
    for (const LibrarySchedule& schedule : entry.schedules) {
      if (schedule.target != "sm_90a") continue;
      expect_library_kernel(entry, {"schedule=" + schedule.name}, count);
    }
  }
  EXPECT_EQ(count.refused, 0);
  EXPECT_GT(count.kernels, 100);
}

TEST(OneToOne, Examples) {
  Count count;
  for (const Kernel& kernel : example_kernels()) {
    SCOPED_TRACE(kernel.name());
    expect_one_to_one(kernel, count);
  }
  EXPECT_EQ(count.refused, 0);
}

TEST(OneToOne, RandomKernels) {
  constexpr int kKernels = 150;
  Count count;
  for (int seed = 1; seed <= kKernels; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const checks::fuzz::Recipe recipe = checks::fuzz::random_recipe(seed);
    expect_one_to_one(checks::fuzz::trace(recipe).kernel, count);
    if (recipe.style == checks::fuzz::Recipe::Style::explicit_level) {
      expect_one_to_one(checks::fuzz::trace_explicit(recipe, ir::default_target()), count);
    }
  }
  EXPECT_LT(count.refused, count.kernels / 20);
}

// The count notices one more and one fewer of each.
TEST(OneToOne, OneMoreOrOneFewerIsNoticed) {
  const LibraryKernel& entry = find_kernel("gemm");
  for (const char* schedule : {"schedule=128x256", "schedule=64x96_a2_b2_split4"}) {
    const OptionValues options = resolve_options(entry, {schedule});
    const Kernel kernel = build_choice(entry, choose_schedule(entry, options, "sm_90a"));
    const ir::Kernel machine =
        compiler::compile_to_machine(kernel.finish(), ir::default_target()).kernel;
    const std::string text = print_cuda(machine).text;
    ASSERT_EQ(difference(machine, text), "");
    std::map<const Row*, std::pair<std::string, std::size_t>> calls;
    for_each_call(std::string_view(text).substr(body_of(text)),
                  [&](const std::string& call, std::size_t at) {
                    const Row* row = row_of(call);
                    if (row) calls[row] = {call, body_of(text) + at};
                  });
    EXPECT_GT(calls.size(), 15u);
    for (const auto& [row, call] : calls) {
      const auto name = std::string(ir::info(row->operations[0]).name) + ":";
      const std::string more = text + call.first, fewer = std::string(text).erase(call.second, 4);
      EXPECT_THAT(difference(machine, more), testing::HasSubstr(name));
      EXPECT_THAT(difference(machine, fewer), testing::HasSubstr(name));
    }
    EXPECT_NE(unknown_in(text + "__threadfence();"), "");
    EXPECT_NE(misplaced_instructions(
                  "__device__ __forceinline__ void pin() { asm(\"bar.sync 1;\"); }" + text),
              "");
  }
}

}  // namespace
}  // namespace tilewright::codegen
