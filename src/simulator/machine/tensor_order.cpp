#include <fmt/format.h>

#include <algorithm>

#include "simulator/machine/world.h"

// Order in tensor memory, where PTX gives it (ISA 9.0, "tcgen05 memory consistency"): products of
// one shape on one result are in order, and so are a copy and a product behind it, a shift and a
// product either way. With MachineOptions::issue_order all of one thread are. Accesses of threads
// are over behind their wait, and products behind a commit. Others learn of that behind
// fence_before, or by the commit, and rely on it behind fence_after.
namespace tilewright::simulator {
namespace {

using Kind = Agents::Kind;

std::string_view verb_of(const Access& access) { return access.write ? "write" : "read"; }

}  // namespace

bool Order::is_ordered_in_tensor_memory(const Warp& warp, const Access& earlier,
                                        const Access& access) const {
  // What was given back was no longer used then.
  if (earlier.instruction->code == Code::tensor_allocation) return true;
  const View& view = warp.view(access.instruction->elected);
  if (view.tensor[earlier.agent] >= earlier.epoch) return true;
  if (access.instruction->code == Code::tensor_allocation) {
    return view.generic[earlier.agent] >= earlier.epoch;
  }
  if (earlier.agent != access.agent || agents_.kind(access.agent) != Kind::tensor_products) {
    return false;
  }
  if (issue_order_) return true;
  const bool behind_product = earlier.instruction->code == Code::tensor_product;
  if (access.instruction->code == Code::tensor_copy) {
    return behind_product && access.instruction->op == ir::Op::tcgen05_shift;
  }
  if (!behind_product) return true;  // a copy or a shift, and a product
  const std::vector<TensorProduct>& products = launch_.kernel.tensor_products;
  return earlier.accumulator == access.accumulator &&
         products[earlier.instruction->detail].instruction ==
             products[access.instruction->detail].instruction;
}

std::string Order::missing_in_tensor_memory(const Warp& warp, const Access& earlier,
                                            const Access& access) const {
  const bool known = knows(warp, access.instruction->elected, earlier.agent, earlier.epoch);
  if (known) return "tcgen05_fence_after behind what orders the two";
  const Kind kind = agents_.kind(earlier.agent);
  if (kind == Kind::tensor_products) {
    if (earlier.agent == access.agent && access.instruction->code == Code::tensor_copy) {
      return "a commit and a wait before the copy: only a product follows a copy in order";
    }
    if (earlier.agent == access.agent) {
      return "a commit and a wait between products of other shapes, or on other columns: they are "
             "not in order";
    }
    return "tcgen05_commit behind the product, and a wait for its barrier (Ring::commit or "
           "Barrier::commit, and who consumes or waits)";
  }
  const Cta& its = *warp.cta->cluster->ctas[earlier.agent / agents_.per_cta()];
  const Warp& owner = its.warps[agents_.index(earlier.agent)];
  const bool loads = kind == Kind::tensor_loads;
  const Epoch waits = loads ? owner.tensor_load_waits : owner.tensor_store_waits;
  if (waits < earlier.epoch) {
    return loads ? "tcgen05_wait_ld behind the first" : "tcgen05_wait_st behind the first";
  }
  const std::string order =
      "tcgen05_fence_before behind the wait for the first, then a barrier, then "
      "tcgen05_fence_after";
  if (access.instruction->code == Code::tensor_allocation) {
    return order +
           " (a barrier of all who use the columns, of a pair a ClusterBarrier that they "
           "wait for, before TensorMemory::free)";
  }
  return order + (loads ? " (Ring::release or Barrier::arrive behind the load of the columns)"
                        : " (Ring::release or Barrier::arrive behind the store to the columns)");
}

void Order::tensor(const Warp& warp, const Access& access, Cta& cta, ByteSet& windows) {
  if (!enabled_) return windows.clear();
  if (launch_.recorder) launch_.recorder->ordered(launch_, access, ir::Memory::tensor);
  windows.drain([&](std::uint64_t block, Bytes touched) {
    const BlockRun run{static_cast<std::int64_t>(block) / ShadowBlock::kBytes, 1, touched};
    cta.tensor->shadow.touch(access, run, [&](const ShadowBlock::Record& earlier, std::int64_t) {
      if (is_ordered_in_tensor_memory(warp, earlier, access)) return;
      const Bytes both{touched.cells & earlier.bytes.cells,
                       static_cast<std::uint16_t>(touched.mask & earlier.bytes.mask)};
      const auto [first, last] = both.extent();
      const auto column = [&](std::int64_t byte) {
        return (static_cast<std::int64_t>(block) + byte) / TensorMemory::kHalves;
      };
      launch_.log.add(
          {"race", earlier.instruction->where(), access.instruction->where(),
           fmt::format("race: tensor memory, columns {} to {}\n{}\n{}", column(first), column(last),
                       launch_.access_line(std::string(verb_of(earlier)), earlier),
                       launch_.access_line(std::string(verb_of(access)), access)),
           missing_in_tensor_memory(warp, earlier, access)});
    });
  });
}

// Each lane waits for its own.
void Order::wait_for_tensor(Warp& warp, Agents::Kind kind, Epoch count) const {
  if (!enabled_) return;
  const int agent = agents_.at(warp.cta->cluster_rank(), kind, warp.index);
  Clock& own = warp.lanes.tensor;
  if (own.size() == 0) own = Clock(agents_.count());
  own[agent] = std::max(own[agent], count);
}

// Own accesses, which are over. One lane hands on those of all where the lanes meet first.
void Order::fence_before(Warp& warp, bool elected) const {
  if (!enabled_ || elected) return;
  View& view = warp.lanes;
  for (const Kind kind : {Kind::tensor_loads, Kind::tensor_stores}) {
    const int agent = agents_.at(warp.cta->cluster_rank(), kind, warp.index);
    const Clock& over = view.tensor;
    view.generic[agent] = std::max(view.generic[agent], over[agent]);
  }
}

void Order::fence_after(Warp& warp, bool elected) const {
  if (!enabled_) return;
  for (const bool lane : {true, false}) {
    if (elected && !lane) continue;
    View& view = warp.view(lane);
    view.tensor.join(view.generic);
  }
}

}  // namespace tilewright::simulator
