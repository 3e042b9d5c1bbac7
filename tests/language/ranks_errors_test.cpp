#include <functional>

#include "ir/text.h"
#include "language/misuse.h"
#include "tilewright/ranks.h"

// Kernels of several ranks: what is recorded, and misuse that is found while tracing.
namespace tilewright {
namespace {

struct TracedRanks {
  Kernel kernel{"k"};
  Dim rows = kernel.dim("rows");
  Tensor X = kernel.in("X", bf16, {rows, 64});
  Tensor table = kernel.in("table", i32, {rows});
  Tensor parts = kernel.symmetric("parts", bf16, {kernel.ranks(), rows, 64});
  Tensor counts = kernel.symmetric("counts", i32, {8});
  Signals ready = kernel.signals("ready", 4);
  Block block = rows.block(0, 64);
  SharedTile tile{kernel, "tile", bf16, 64, 64};

  void in_role(const std::function<void()>& body) {
    kernel.roles({role("send", warps(1), registers(240), body)});
  }
};

void rank_misuse(const std::string& caret, const std::vector<std::string>& parts,
                 const std::function<void(TracedRanks&)>& body) {
  test::misuse(caret, parts, [&] {
    TracedRanks t;
    t.in_role([&] { body(t); });
  });
}

TEST(Ranks, AreRecorded) {
  TracedRanks t;
  t.in_role([&] {
    const Index to = (t.kernel.rank() + 1) % t.kernel.ranks();
    tma_store(t.parts.at(to)(t.kernel.rank(), t.block, all), t.tile);
    bulk_commit();
    bulk_wait(0);
    signal(t.ready.at(to), 0, t.kernel.epoch());
    signal_add(t.ready.at(to), 1, 1, {Semantics::relaxed, Scope::gpu});
    wait_flag(t.ready, 0, Compare::ge, t.kernel.epoch());
    fence(Scope::system);
    fence_proxy_async_global();
    store_index(t.counts.at(0)(1), load_index(t.counts(2), {Semantics::acquire, Scope::gpu}),
                {Semantics::weak, Scope::gpu});
  });
  t.kernel.ctas(1);
  const std::string text = ir::to_text(t.kernel.finish());
  for (const char* part :
       {"dim ranks at_least(1) at_most(8)", "symmetric parts: bf16[ranks, rows, 64] = %2",
        "signals ready: i32[4] = %4",
        "{name = \"parts_peers_64x64\", box = [1, 64, 64], swizzle = 128, peers = 1}", "peer_map ",
        "peer %4, ", "{semantics = \"release\", scope = \"system\"}",
        "{semantics = \"relaxed\", scope = \"gpu\"}",
        "{compare = \"ge\", semantics = \"acquire\", scope = \"system\"}",
        "fence {scope = \"system\"}", "fence_proxy_async_global", "peer %3, ", "load_index %3, ",
        "{semantics = \"acquire\", scope = \"gpu\"}", "{semantics = \"weak\"}"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(RanksErrors, TensorOfThisRank) {
  rank_misuse("at(", {"at: X is in this rank alone", "X is declared", "Kernel::symmetric"},
              [](TracedRanks& t) { tma_store(t.X.at(1)(t.block, all), t.tile); });
}

TEST(RanksErrors, NoSuchRank) {
  rank_misuse("at(", {"at: rank 8 of ready", "at most 8"},
              [](TracedRanks& t) { signal(t.ready.at(8), 0, 1); });
}

TEST(RanksErrors, NoSuchWord) {
  rank_misuse("wait_flag(", {"wait_flag: word 4 of the 4 of ready", "words count from 0 to 3"},
              [](TracedRanks& t) { wait_flag(t.ready, 4, Compare::ge, 1); });
}

TEST(RanksErrors, OrdersThatPtxDoesNotHave) {
  rank_misuse("signal(", {"signal: it is acquire, expected relaxed or release"},
              [](TracedRanks& t) {
                signal(t.ready, 0, 1, {Semantics::acquire, Scope::system});
              });
  rank_misuse("signal(", {"signal: it is weak, expected relaxed or release"}, [](TracedRanks& t) {
    signal(t.ready, 0, 1, {Semantics::weak, Scope::system});
  });
  rank_misuse("signal_add(", {"signal_add: it is acq_rel, expected relaxed or release"},
              [](TracedRanks& t) {
                signal_add(t.ready, 0, 1, {Semantics::acq_rel, Scope::system});
              });
  rank_misuse("wait_flag(", {"wait_flag: it is release, expected relaxed or acquire"},
              [](TracedRanks& t) {
                wait_flag(t.ready, 0, Compare::ge, 1, {Semantics::release, Scope::system});
              });
  rank_misuse("load_index(", {"load_index: it is release, expected weak, relaxed or acquire"},
              [](TracedRanks& t) {
                load_index(t.counts(0), {Semantics::release, Scope::gpu});
              });
  rank_misuse("atomic_add(",
              {"atomic_add: it is weak, expected relaxed, acquire, release or acq_rel"},
              [](TracedRanks& t) {
                atomic_add(t.counts(0), 1, {Semantics::weak, Scope::gpu});
              });
}

TEST(RanksErrors, InputsStayAsTheyAre) {
  rank_misuse("store_index(", {"store_index: table is an input", "Kernel::symmetric"},
              [](TracedRanks& t) {
                store_index(t.table(0), 1, {Semantics::release, Scope::gpu});
              });
  rank_misuse("load_index(", {"load_index: table is an input", "leave the order out"},
              [](TracedRanks& t) {
                load_index(t.table(0), {Semantics::acquire, Scope::gpu});
              });
  rank_misuse("store_index(", {"store_index: X is not one element of an i32 vector"},
              [](TracedRanks& t) {
                store_index(t.X(0, 0), 1, {Semantics::release, Scope::gpu});
              });
}

TEST(RanksErrors, Declarations) {
  const auto declares = [](const std::string& caret, const std::vector<std::string>& parts,
                           const std::function<void(Kernel&)>& body) {
    test::misuse(caret, parts, [&] {
      Kernel kernel("k");
      body(kernel);
    });
  };
  declares("ready", {"signals \"ready\": 0 words", "one or more"},
           [](Kernel& kernel) { kernel.signals("ready", 0); });
  declares("dim(", {"\"ranks\" is what kernel.ranks() gives"},
           [](Kernel& kernel) { kernel.dim("ranks"); });
  declares("X",
           {"declared behind the signals \"ready\"",
            "declare workspaces, scratch memory and signals last"},
           [](Kernel& kernel) {
             kernel.signals("ready", 1);
             kernel.in("X", f32, {4});
           });
  declares("signal(", {"signal is called outside a role"}, [](Kernel& kernel) {
    const Signals ready = kernel.signals("ready", 1);
    signal(ready, 0, 1);
  });
}

}  // namespace
}  // namespace tilewright
