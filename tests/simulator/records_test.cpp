#include <map>
#include <tuple>

#include "simulator/litmus.h"
#include "simulator/machine/launch.h"
#include "simulator/machine/recorder.h"

// What the record of an instruction says of memory is what the virtual GPU does: it accesses that
// memory, through that proxy, changes it, is over when the record says so, and races with whoever
// does not wait for it.
namespace tilewright::simulator {
namespace {

using ir::Completion;
using ir::Memory;
using ir::Op;
using ir::Proxy;

const char* const kRegisters =
    "layout = register_layout[16x16|r:8@1:2|l:2@1:1,16@0:1]";  // of %30, of one warp

// An instruction, and a plain store to the bytes that it accesses, of each memory.
struct Sample {
  std::string text;
  std::string store_shared = {}, store_global = {};
  int warps = 1;
};

const std::map<Op, Sample>& samples() {
  static const std::string word = "    store_index %90, %3, %7 {semantics = \"weak\"}\n";
  static const std::string words = "    store_words %31, %24, %0\n";
  static const std::string box =
      fmt::format("%0, %0, %16, %16 {{sizes = [16, 16], {}}}\n", kRegisters);
  static const std::string elements = fmt::format(
      "    store_elements %30, %23, %0 {{{}, row_bytes = 32, swizzle_divisor = 1, "
      "swizzle_mask = 0, panel_columns = 16, panel_bytes = 512}}\n",
      kRegisters);
  static const std::string store_box = "    store_registers %92, %30, " + box;
  static const std::string begin_product =
      "    %61: f32 = constant {value = 0.0}\n    fill %33, %61\n    wgmma_fence %33, %32\n";
  static const std::map<Op, Sample> all = {
      {Op::load_index, {"    %61: i32 = load_index %90, %3\n", "", word}},
      {Op::store_index, {"    store_index %90, %3, %7 {semantics = \"relaxed\"}\n", "", word}},
      {Op::atomic_add, {"    %61: i32 = atomic_add %90, %3, %1\n", "", word}},
      {Op::reduce_add,
       {"    reduce_add %90, %3, %1 {semantics = \"relaxed\", scope = \"gpu\"}\n", "", word}},
      {Op::wait_flag,
       {"    wait_flag %90, %3, %5 {compare = \"ne\", semantics = \"relaxed\", scope = \"gpu\"}\n",
        "", word}},
      {Op::shared_load, {kLoad, kStore}},
      {Op::shared_store, {kStore, kStore}},
      {Op::try_cancel,
       {"    fence_proxy_async\n    mbarrier_expect_tx %21, %1 {bytes = 16}\n"
        "    try_cancel %22, %0, %21, %1\n",
        kStore}},
      {Op::query_cancel, {"    %61: i32 = query_cancel %22, %0\n", kStore}},
      {Op::load_registers, {"    load_registers %30, %92, " + box, "", store_box}},
      {Op::store_registers, {store_box, "", store_box}},
      {Op::red_registers,
       {fmt::format(
            "    red_registers %92, %30, %0, %0, %16, %16 {{function = add, sizes = [16, 16], "
            "{}}}\n",
            kRegisters),
        "", store_box}},
      {Op::atomic_registers,
       {fmt::format(
            "    atomic_registers %92, %30, %0, %0, %16, %16 {{function = add, sizes = [16, 16], "
            "{}, semantics = \"relaxed\", scope = \"gpu\"}}\n",
            kRegisters),
        "", store_box}},
      {Op::store_matrix, {store_tile(), store_tile()}},
      {Op::load_matrix, {load_tile(), store_tile()}},
      {Op::store_elements, {elements, store_tile()}},
      {Op::load_elements, {changed(elements, "store_", "load_"), store_tile()}},
      {Op::store_words, {words, words}},
      {Op::load_words, {words + "    warp_sync\n" + changed(words, "store_", "load_"), words}},
      {Op::tma_load, {changed(copy_tile_in(), "%25", "%26"), store_tile(), store_box}},
      {Op::cluster_copy,
       {"    mbarrier_expect_tx %21, %1 {bytes = 512}\n    cluster_copy %23, %24, %0, %21, %1, %0, "
        "%0 {bytes = 512}\n",
        words}},
      {Op::tma_store, {"    tma_store %26, %23, %0, %0, %0\n", store_tile(), store_box}},
      {Op::tma_reduce,
       {"    tma_reduce %26, %23, %0, %0, %0 {function = add}\n", store_tile(), store_box}},
      {Op::wgmma_rs, {begin_product + product(), store_tile(), "", 4}},
      {Op::wgmma_ss,
       {begin_product + "    wgmma_ss %33, %23, %0, %23, %0, %10 {n = 16, k = 16, descriptor_a = "
                        "0, descriptor_b = 2097216}\n",
        store_tile(), "", 4}},
  };
  return all;
}

// What ends an asynchronous instruction's group, and what waits for that.
std::string commit(Completion completion) {
  switch (completion) {
    case Completion::now:
    case Completion::mbarrier:
    case Completion::committed:  // of tensor memory: tensor_memory_test.cpp
    case Completion::waited:
    case Completion::event:
      break;
    case Completion::bulk:
      return "    bulk_commit\n";
    case Completion::products:
      return "    wgmma_commit\n";
  }
  return "";
}
std::string wait(Completion completion) {
  switch (completion) {
    case Completion::now:
    case Completion::committed:
    case Completion::waited:
    case Completion::event:
      break;
    case Completion::mbarrier:
      return "    mbarrier_wait %21, %1, %0\n";
    case Completion::bulk:
      return kBulkWait;
    case Completion::products:
      return "    wgmma_wait %33 {count = 0}\n";
  }
  return "";
}

Completion completion_of(Agents::Kind agent) {
  switch (agent) {
    case Agents::Kind::lanes:
    case Agents::Kind::elected_lane:
      break;
    case Agents::Kind::products:
      return Completion::products;
    case Agents::Kind::store_reads:
    case Agents::Kind::store_writes:
      return Completion::bulk;
    case Agents::Kind::tensor_products:
      return Completion::committed;
    case Agents::Kind::tensor_loads:
    case Agents::Kind::tensor_stores:
      return Completion::waited;
    case Agents::Kind::phases:
      return Completion::mbarrier;
  }
  return Completion::now;
}

// What one instruction does to memory.
class Watch : public Recorder {
 public:
  explicit Watch(Op op) : op_(op) {}

  using Kinds = std::set<std::tuple<Memory, Proxy, bool /*write*/>>;
  Kinds accesses;
  std::set<Completion> completions;
  bool changes_shared() const { return before_ != after_; }

  void ordered(const Launch& launch, const Access& access, Memory memory) override {
    if (access.instruction->op != op_) return;
    accesses.emplace(memory, access.async ? Proxy::async : Proxy::generic, access.write);
    completions.insert(completion_of(launch.order.agents().kind(access.agent)));
  }
  void starts(const Warp& warp, const Instruction& instruction) override {
    if (instruction.op == op_ && instruction.operation && before_.empty()) before_ = bytes(warp);
  }
  void executed(const Warp& warp, const Instruction& instruction) override {
    if (!before_.empty() && instruction.operation) after_ = bytes(warp);
  }

 private:
  // Behind the barriers.
  static std::vector<std::byte> bytes(const Warp& warp) {
    return {warp.cta->shared.at(128), warp.cta->shared.at(1280)};
  }
  Op op_;
  std::vector<std::byte> before_, after_;
};

TEST(Records, OfWhatTouchesMemoryHaveASample) {
  for (int i = 0; i <= static_cast<int>(Op::set_max_registers); ++i) {
    const auto op = static_cast<Op>(i);
    const ir::OpInfo& record = ir::info(op);
    const auto touches = [&](Memory memory) {
      return record.reads(memory) || record.writes(memory);
    };
    // What works on tensor memory has tests of its own (tensor_memory_test.cpp).
    if (!record.in(ir::Form::machine) || touches(Memory::tensor) ||
        record.agent == ir::Agent::sequencer) {  // and so has what is a core's
      continue;
    }
    EXPECT_EQ(samples().count(op), touches(Memory::global) || touches(Memory::shared))
        << record.name;
  }
}

TEST(Records, SayWhichMemoryIsAccessed) {
  for (const auto& [op, sample] : samples()) {
    const ir::OpInfo& record = ir::info(op);
    SCOPED_TRACE(record.name);
    Watch watch(op);
    MachineOptions options;
    options.recorder = &watch;
    const std::string rest = commit(record.completion) + wait(record.completion);
    const MachineReport report =
        run_litmus(litmus(role("a", 0, sample.warps, sample.text + rest)), options);
    ASSERT_TRUE(report.ok()) << first_message(report);
    Watch::Kinds said;
    for (const Memory memory : {Memory::global, Memory::shared}) {
      for (const Proxy proxy : {Proxy::generic, Proxy::async}) {
        // What reads and writes an element does so in one access; a copy reads others.
        const bool copies = op == Op::cluster_copy;
        if (record.writes(memory, proxy)) said.emplace(memory, proxy, true);
        if (record.reads(memory, proxy) && (copies || !record.writes(memory, proxy)))
          said.emplace(memory, proxy, false);
      }
    }
    EXPECT_EQ(watch.accesses, said);
    EXPECT_EQ(watch.completions, std::set<Completion>{record.completion});
  }
}

TEST(Records, SayWhichMemoryChanges) {
  for (const auto& [op, sample] : samples()) {
    const ir::OpInfo& record = ir::info(op);
    SCOPED_TRACE(record.name);
    const std::string rest = commit(record.completion) + wait(record.completion);
    MachineTensor x("X", DType::i32, {64}), a("A", DType::bf16, {16, 16}), y = a;
    y.name = "Y";
    std::fill(x.bytes.begin(), x.bytes.end(), std::byte{1});
    a.randomise(1);
    y.randomise(2);
    const std::vector<std::byte> x_before = x.bytes, y_before = y.bytes;
    Watch watch(op);
    MachineOptions options;
    options.recorder = &watch;
    const MachineReport report =
        run(litmus(role("a", 0, sample.warps, sample.text + rest)), {&x, &a, &y}, options);
    ASSERT_TRUE(report.ok()) << first_message(report);
    EXPECT_EQ(x.bytes != x_before || y.bytes != y_before, record.writes(Memory::global));
    EXPECT_EQ(watch.changes_shared(), record.writes(Memory::shared));
  }
}

// Whether some schedule has a race between the two roles.
bool races(const std::string& text) {
  MachineOptions options;
  for (options.seed = 0; options.seed < kLitmusSeeds; ++options.seed) {
    const MachineReport report = run_litmus(text, options);
    if (report.ok()) continue;
    EXPECT_EQ(report.faults[0].kind, "race");
    EXPECT_THAT(report.faults[0].message, testing::AllOf(testing::HasSubstr("first warp"),
                                                         testing::HasSubstr("second warp")));
    return true;
  }
  return false;
}

TEST(Records, OfAccessesAreOrderedByWhatWaitsForThem) {
  for (const auto& [op, sample] : samples()) {
    const ir::OpInfo& record = ir::info(op);
    const std::string issue = sample.text + commit(record.completion);
    const std::string over = wait(record.completion);
    const std::string hand_on = "    warp_sync\n" + kArrive;
    for (const Memory memory : {Memory::global, Memory::shared}) {
      const std::string& store =
          memory == Memory::global ? sample.store_global : sample.store_shared;
      EXPECT_EQ(!store.empty(), record.reads(memory) || record.writes(memory)) << record.name;
      if (store.empty()) continue;
      SCOPED_TRACE(fmt::format("{}, then{}", record.name, store));
      const auto text = [&](const std::string& first, const std::string& then) {
        return litmus(role("first", 0, sample.warps, first) + role("second", 4, 1, then),
                      {sample.warps, 160});
      };
      EXPECT_FALSE(races(text(issue + over + hand_on, kWait + store)));
      EXPECT_TRUE(races(text(issue + over, store))) << "without a barrier";
      if (record.completion == Completion::now) continue;
      EXPECT_TRUE(races(text(issue + hand_on + over, kWait + store))) << "without a wait";
    }
  }
}

}  // namespace
}  // namespace tilewright::simulator
