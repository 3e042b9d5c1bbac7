#include "check/machine_events.h"

#include <algorithm>

#include "ir/multicast.h"
#include "ptx/machine.h"
#include "simulator/machine/launch.h"

namespace tilewright::checks {

using ptx::EventKind;
using simulator::Code;
using simulator::Instruction;
using simulator::Warp;

namespace {

ptx::Type type_of(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return ptx::Type::bf16;
    case DType::f16:
      return ptx::Type::f16;
    case DType::f8e4m3:
      return ptx::Type::e4m3;
    case DType::f32:
      return ptx::Type::tf32;
    case DType::i32:
      return ptx::Type::s32;
    case DType::i64:
      return ptx::Type::s64;
    case DType::i8:
      return ptx::Type::s8;
    case DType::u32:
      return ptx::Type::u32;
    case DType::u8:
    case DType::boolean:
      break;
  }
  return ptx::Type::u8;
}

}  // namespace

void MachineEvents::begin(const simulator::Launch& launch) {
  launch_ = &launch;
  events.assign(static_cast<std::size_t>(launch.kernel.ctas * launch.kernel.warps), {});
}

void MachineEvents::add(const Warp& warp, const Instruction& instruction, EventKind kind,
                        std::vector<std::int64_t> values) {
  const auto place = static_cast<std::size_t>(warp.cta->index * launch_->kernel.warps + warp.index);
  events[place].push_back(
      {kind, instruction.elected ? 1u : ~0u, instruction.where().line, std::move(values)});
}

void MachineEvents::starts(const Warp& warp, const Instruction& instruction) {
  const std::int64_t cluster = warp.cta->index / warp.cta->size;
  if (std::find(clusters.rbegin(), clusters.rend(), cluster) == clusters.rend()) {
    clusters.push_back(cluster);
  }
  switch (instruction.code) {
    case Code::named_barrier:
    case Code::cta_barrier:
      return add(
          warp, instruction,
          instruction.op == ir::Op::named_arrive ? EventKind::named_arrive : EventKind::named_sync,
          {instruction.detail + warp.integer(instruction.a), instruction.value});
    case Code::cluster_barrier:
      add(warp, instruction, EventKind::cluster_arrive);
      return add(warp, instruction, EventKind::cluster_wait);
    case Code::lane_order:
      return add(warp, instruction, EventKind::warp_sync);
    case Code::fence:
      switch (ir::as<ir::FenceOp>(instruction.op)) {
        case ir::FenceOp::fence_proxy_async:
          return add(warp, instruction, EventKind::fence_proxy_async);
        case ir::FenceOp::fence_proxy_async_global:
          return add(warp, instruction, EventKind::fence_proxy_async_global);
        case ir::FenceOp::fence_barrier_init:
          return add(warp, instruction, EventKind::fence_barrier_init);
        case ir::FenceOp::fence_cluster:
          return add(warp, instruction, EventKind::fence, {1});
        case ir::FenceOp::fence:
          return add(warp, instruction, EventKind::fence, {instruction.value});
      }
      return;
    case Code::bulk_copy:
      return add_copy(warp, instruction);
    case Code::product:
      return add_product(warp, instruction);
    case Code::product_fence:
      return add(warp, instruction, EventKind::product_fence);
    case Code::commit:
      return add(warp, instruction,
                 instruction.op == ir::Op::bulk_commit ? EventKind::bulk_commit
                                                       : EventKind::product_commit);
    case Code::group_wait:
      return add(warp, instruction,
                 instruction.op == ir::Op::wgmma_wait ? EventKind::product_wait
                 : instruction.detail != 0            ? EventKind::bulk_wait_read
                                                      : EventKind::bulk_wait,
                 {instruction.value});
    case Code::word:
      return add_word(warp, instruction);
    case Code::mbarrier:
      if (instruction.op != ir::Op::mbarrier_wait) add_mbarrier(warp, instruction);
      return;
    case Code::end:  // these order nothing, or what they do is seen once it is done
    case Code::move:
    case Code::jump:
    case Code::loop_test:
    case Code::loop_next:
    case Code::branch_unless:
    case Code::enter_role:
    case Code::leave_role:
    case Code::function:
    case Code::array:
    case Code::computation:
    case Code::check:
    case Code::global_access:
    case Code::matrix_access:
    case Code::element_access:
    case Code::fragment_access:
    case Code::shared_word:
    case Code::tensor_allocation:
    case Code::tensor_access:
    case Code::tensor_wait:
    case Code::tensor_product:
    case Code::tensor_copy:
    case Code::tensor_commit:
    case Code::tensor_fence:
    case Code::launch_control:
    case Code::word_wait:
    case Code::register_budget:
    case Code::parted:
      return;
  }
}

void MachineEvents::executed(const Warp& warp, const Instruction& instruction) {
  if (warp.state != Warp::State::runnable) return;
  if (instruction.code == Code::mbarrier && instruction.op == ir::Op::mbarrier_wait) {
    return add_mbarrier(warp, instruction);
  }
  if (instruction.code == Code::word_wait) return add_word(warp, instruction);
  if (instruction.code == Code::launch_control && instruction.op == ir::Op::query_cancel) {
    return add_answer(warp, warp.integer(instruction.b));
  }
  if (instruction.code != Code::register_budget) return;
  const auto group = [](int index) { return index / 4; };
  if (instruction.object >= 0 && group(warp.index) != group(instruction.object)) return;
  add(warp, instruction, EventKind::registers, {instruction.value, instruction.detail});
}

// Each warp that works on tiles looks at every answer to its cluster.
void MachineEvents::add_answer(const Warp& warp, std::int64_t first) {
  std::vector<std::int64_t>& of_cluster = taken[warp.cta->index / warp.cta->size];
  std::size_t& seen = answers_[{warp.cta->index, warp.index}];
  if (seen++ == of_cluster.size()) of_cluster.push_back(first);
}

void MachineEvents::add_mbarrier(const Warp& warp, const Instruction& instruction) {
  const simulator::BarrierArray& array = launch_->kernel.barrier_arrays[instruction.object];
  const auto place = [&](std::int64_t index) { return array.offset + 8 * index; };
  switch (ir::as<ir::MbarrierOp>(instruction.op)) {
    case ir::MbarrierOp::mbarrier_init:
      for (int i = 0; i < array.count; ++i) {
        add(warp, instruction, EventKind::mbarrier_init, {place(i), instruction.value});
      }
      return;
    case ir::MbarrierOp::mbarrier_expect_tx:
      return add(warp, instruction, EventKind::mbarrier_expect_tx,
                 {place(warp.integer(instruction.a)), instruction.value});
    case ir::MbarrierOp::mbarrier_arrive:
      if (instruction.value != 0) {
        return add(warp, instruction, EventKind::mbarrier_arrive_remote,
                   {place(warp.integer(instruction.a)), warp.integer(instruction.b)});
      }
      return add(warp, instruction, EventKind::mbarrier_arrive,
                 {place(warp.integer(instruction.a)), 1});
    case ir::MbarrierOp::mbarrier_wait:
      return add(warp, instruction, EventKind::mbarrier_wait,
                 {place(warp.integer(instruction.a)), warp.integer(instruction.b)});
  }
}

void MachineEvents::add_copy(const Warp& warp, const Instruction& instruction) {
  const simulator::PreparedKernel& kernel = launch_->kernel;
  const simulator::Transfer& transfer = kernel.transfers[instruction.detail];
  const bool loads = ir::info(instruction.op).writes(ir::Memory::shared);
  const std::int64_t address =
      kernel.allocations[instruction.object].offset + warp.integer(transfer.offset) + transfer.step;
  const auto barrier = [&] {
    const simulator::BarrierArray& array = kernel.barrier_arrays[transfer.barriers];
    return array.offset + 8 * warp.integer(transfer.barrier_index);
  };
  if (transfer.source >= 0) {
    return add(warp, instruction, EventKind::cluster_copy,
               {kernel.allocations[transfer.source].offset + warp.integer(transfer.source_offset),
                address, transfer.bytes, barrier(), warp.integer(transfer.cta)});
  }
  std::vector<std::int64_t> values{printed_map(warp, instruction), address};
  if (loads) {
    values.push_back(barrier());
    std::uint64_t receivers = transfer.multicast;
    if (const int group = transfer.multicast_group; receivers != 0 && group != 0) {
      const auto rank = static_cast<int>(warp.cta->cluster_rank());
      receivers <<= rank / group * group + rank % ir::multicast_stride(transfer.multicast);
    }
    values.push_back(static_cast<std::int64_t>(receivers));
  } else {
    const ir::Attributes& attributes = instruction.operation->attributes;
    const bool reduces = attributes.has(ir::Key::function);
    const ir::Op function = reduces ? attributes.function() : ir::Op::add;
    values.push_back(!reduces ? 0 : function == ir::Op::add ? 1 : function == ir::Op::min ? 2 : 3);
  }
  values.push_back(static_cast<std::int64_t>(transfer.coordinates.size()));
  for (const simulator::Slot slot : transfer.coordinates) values.push_back(warp.integer(slot));
  add(warp, instruction, loads ? EventKind::tensor_load : EventKind::tensor_store,
      std::move(values));
}

// Its number among the maps of the launch: a ragged one is two.
std::int64_t MachineEvents::printed_map(const Warp& warp, const Instruction& instruction) const {
  const simulator::Transfer& transfer = launch_->kernel.transfers[instruction.detail];
  const std::vector<simulator::TensorMap>& maps = launch_->kernel.maps;
  const auto ragged = std::count_if(maps.begin(), maps.begin() + transfer.map,
                                    [](const auto& map) { return map.ragged_axis >= 0; });
  const bool outside = transfer.outside != ir::kNoValue && warp.integer(transfer.outside) != 0;
  return transfer.map + ragged + (outside ? 1 : 0);
}

void MachineEvents::add_product(const Warp& warp, const Instruction& instruction) {
  const simulator::PreparedKernel& kernel = launch_->kernel;
  const simulator::Product& product = kernel.products[instruction.detail];
  const auto descriptor = [&](const simulator::MatrixOperand& operand) {
    const std::int64_t start = kernel.allocations[operand.allocation].offset +
                               warp.integer(operand.offset) + operand.step + ptx::kSharedBase;
    return static_cast<std::int64_t>(operand.descriptor |
                                     (static_cast<std::uint64_t>(start) >> 4 & 0x3fff));
  };
  const bool from_registers = product.a_array >= 0;
  add(warp, instruction, EventKind::product,
      {product.n, product.k, static_cast<std::int64_t>(type_of(product.dtype)), from_registers,
       from_registers ? 0 : descriptor(product.a), descriptor(product.b),
       warp.integer(product.accumulate) != 0});
}

void MachineEvents::add_word(const Warp& warp, const Instruction& instruction) {
  const simulator::WordAccess& access = launch_->kernel.words[instruction.detail];
  const ir::OpInfo& record = ir::info(instruction.op);
  const bool reads = record.reads(ir::Memory::global), writes = record.writes(ir::Memory::global);
  const bool is_weak = access.order.semantics == Semantics::weak;
  if (is_weak && !(reads && writes)) return;
  const TensorArgument& tensor = launch_->arguments.tensors[access.tensor];
  std::int64_t element = 0;
  for (std::size_t axis = 0; axis < access.coordinates.size(); ++axis) {
    element += warp.integer(access.coordinates[axis]) * tensor.strides[axis];
  }
  const std::int64_t place = word_place(static_cast<std::size_t>(access.tensor), element * 4);
  if (reads && writes) additions.push_back({place, warp.cta->index, warp.index});
  std::vector<std::int64_t> values{
      static_cast<std::int64_t>(access.order.semantics),
      static_cast<std::int64_t>(is_weak ? Scope::gpu : access.order.scope), place};
  if (writes) values.push_back(static_cast<std::int32_t>(warp.integer(access.value)));
  add(warp, instruction,
      !writes ? EventKind::word_read
      : reads ? EventKind::word_add
              : EventKind::word_write,
      std::move(values));
}

}  // namespace tilewright::checks
