#include <fmt/format.h>

#include <algorithm>

#include "simulator/machine/cycle_costs.h"
#include "simulator/machine/launch_trace.h"
#include "support/diagnostic.h"

// What runs beside the warps: copies, products, bulk stores.
namespace tilewright::simulator {
namespace {

// The end of the awaited groups' work, by the member that says which end.
template <typename Work, typename End>
std::int64_t end_of(const std::vector<Work>& list, std::int64_t groups, End Work::*which) {
  std::int64_t end = 0;
  for (const Work& work : list) {
    if (work.group < groups) end = std::max(end, work.*which);
  }
  return end;
}

}  // namespace

// "k[stage 1]", or "o" where there is one stage.
std::string LaunchTrace::place_of(int allocation, std::int64_t address) const {
  const Allocation& place = launch_->kernel.allocations[allocation];
  if (place.stages <= 1 || place.stage_bytes == 0) return place.name;
  return fmt::format("{}[stage {}]", place.name, (address - place.offset) / place.stage_bytes);
}

// Outermost axis first, as the kernel's author names them.
std::string LaunchTrace::coordinates(const std::array<std::int64_t, 5>& at, int rank) const {
  std::string words;
  for (int axis = rank - 1; axis >= 0; --axis) {
    words += fmt::format("{}{}", words.empty() ? "" : ", ", at[axis]);
  }
  return "[" + words + "]";
}

std::size_t LaunchTrace::draw(const CtaState& cta, const TraceFlight& flight) {
  std::vector<TraceFlight>& flights = trace_.ctas[cta.trace].flights;
  flights.push_back(flight);
  return flights.size() - 1;
}

void LaunchTrace::load_issued(const Event& event) {
  const PreparedKernel& kernel = launch_->kernel;
  const Transfer& transfer = kernel.transfers[event.instruction->detail];
  const WarpState& issuer = state_of(*event.issuer);
  CtaState& to = state_of(*event.destination);
  const std::int64_t cycles = received_cycles(kernel, transfer.bytes);
  std::int64_t there = issuer.clock + kernel.target->rates.copy_latency;
  if (transfer.map >= 0) {
    const int peer = peer_with(event.data);
    there = std::max(there, peer < 0 ? ask(event) : pull(peer, transfer.bytes, issuer.clock));
  }
  there = std::max(there - cycles, issuer.clock);
  LoadInFlight load{event.instruction, event.address, to.port.reserve(there, cycles) + cycles};
  load_end_ = load.end;
  ends_at(load.end);
  if (context_.draws) load.flight = draw(to, flight_of(event, load.end));
  to.loads.push_back(load);
}

// L2 sends to one multiprocessor after the other what it has asked for, and what it asks for next
// while that is under way.
std::int64_t LaunchTrace::ask(const Event& load) {
  WarpState& issuer = state_of(*load.issuer);
  const bool is_same = asked_.issuer == load.issuer && asked_.instruction == load.instruction &&
                       asked_.clock == issuer.clock;
  if (is_same) return asked_.end;
  const PreparedKernel& kernel = launch_->kernel;
  const Transfer& transfer = kernel.transfers[load.instruction->detail];
  const std::int64_t cycles = l2_cycles(kernel, kernel.maps[transfer.map], transfer.bytes);
  const std::int64_t latency =
      std::max<std::int64_t>(kernel.target->rates.copy_latency - cycles, 0);
  const std::int64_t from = issuer.clock + latency;
  asked_ = {load.issuer, load.instruction, issuer.clock,
            state_of(*load.issuer->cta).asked.reserve(from, cycles) + cycles};
  return asked_.end;
}

TraceFlight LaunchTrace::flight_of(const Event& event, std::int64_t end) {
  const Transfer& transfer = launch_->kernel.transfers[event.instruction->detail];
  const WarpState& issuer = state_of(*event.issuer);
  std::string name, part;
  if (transfer.map < 0) {
    name = fmt::format("CTA {}'s {}", event.issuer->cta->index,
                       place_of(transfer.source, event.source));
  } else {
    const TensorMap& map = launch_->kernel.maps[transfer.map];
    name = map.name;
    part = coordinates(event.coordinates, map.rank);
  }
  const std::string place = place_of(event.instruction->object, event.address);
  TraceFlight flight;
  flight.issue = issuer.clock;
  flight.end = end;
  flight.name = context_.text(fmt::format("{} to {}", name, place));
  flight.place = context_.text(place);
  flight.detail =
      context_.text(fmt::format("{}{} {} bytes, completes {} phase {}", name, part, transfer.bytes,
                                launch_->barrier_name(event.barrier), event.phase));
  flight.iteration = iteration_text(issuer, event.issuer->pc);
  flight.issuer = issuer.index;
  flight.where = event.instruction->where();
  return flight;
}

void LaunchTrace::load_finished(const Event& event) {
  CtaState& to = state_of(*event.destination);
  const auto load = std::find_if(to.loads.begin(), to.loads.end(), [&](const LoadInFlight& each) {
    return each.instruction == event.instruction && each.address == event.address;
  });
  if (load == to.loads.end()) return;
  state_of(*event.signalled)
      .barriers[event.barrier]
      .now.add({load->end, text([&] {
                  TraceFlight& flight = trace_.ctas[to.trace].flights[load->flight];
                  flight.complete = true;
                  return fmt::format("the copy {} ends ({})", trace_.texts[flight.name],
                                     format_location(flight.where));
                })});
  to.loads.erase(load);
}

void LaunchTrace::issue_product(const Warp& warp, WarpState& state,
                                const Instruction& instruction) {
  const PreparedKernel& kernel = launch_->kernel;
  const Product& product = kernel.products[instruction.detail];
  const auto place = [&](const MatrixOperand& operand) {
    const std::int64_t address =
        kernel.allocations[operand.allocation].offset + warp.integer(operand.offset) + operand.step;
    return place_of(operand.allocation, address);
  };
  const auto operands = [&] {
    return fmt::format("{} x {}", product.a_array < 0 ? place(product.a) : "registers",
                       place(product.b));
  };
  const std::int64_t group = warp.product_groups;
  merge(state, TraceSlice::Kind::issue, instruction,
        text([&] { return fmt::format("{}, group {}", operands(), group); }));

  CtaState& cta = state_of(*warp.cta);
  // The warps of a warpgroup issue a product together; its unit begins it for the first of them
  // that was executed.
  const int warpgroup = warp.index / static_cast<int>(kernel.target->limits.group_warps);
  const auto [begun, is_first] =
      cta.products.emplace(std::pair(warpgroup, warp.product_sequence), 0);
  const std::int64_t cycles = product_cycles(launch_->kernel, product);
  if (is_first) {
    const std::int64_t start =
        cta.product_unit.reserve(std::max(state.clock, state.product_end), cycles);
    begun->second = start + cycles;
    ends_at(begun->second);
    if (context_.draws) {
      trace_.ctas[cta.trace].products.push_back(
          {start, start + cycles, text(operands), instruction.where()});
    }
  }
  state.product_end = std::max(begun->second, state.clock + cycles);
  state.products.push_back({group, state.product_end, state.product_end, 0});
  if (!context_.draws) return;
  const auto [entry, is_new] = cta.groups.emplace(std::pair(warpgroup, group), 0);
  if (is_new) {
    TraceFlight flight;
    flight.kind = TraceFlight::Kind::products;
    flight.issue = state.clock;
    flight.name = text(operands);
    flight.place = text([&] { return place(product.b); });
    flight.detail = text([&] {
      return fmt::format("m64n{}k{} {}, group {}", product.n, product.k,
                         tilewright::name_of(product.dtype), group);
    });
    flight.iteration = iteration_text(state, warp.pc);
    flight.issuer = warp.index;
    flight.where = instruction.where();
    entry->second = draw(cta, flight);
  }
  TraceFlight& flight = trace_.ctas[cta.trace].flights[entry->second];
  flight.issue = std::min(flight.issue, state.clock);
  flight.end = std::max(flight.end, state.product_end);
  state.products.back().flight = entry->second;
}

void LaunchTrace::issue_tensor_product(const Warp& warp, WarpState& state,
                                       const Instruction& instruction) {
  const PreparedKernel& kernel = launch_->kernel;
  const TensorProduct& product = kernel.tensor_products[instruction.detail];
  const auto operands = [&] {
    return fmt::format("{} of {}", kernel.tensor_memories[product.memory].name,
                       kernel.allocations[product.b.allocation].name);
  };
  merge(state, TraceSlice::Kind::issue, instruction, text(operands));
  CtaState& cta = state_of(*warp.cta);
  const std::int64_t cycles = product_cycles(kernel, *instruction.operation, product.dtype);
  const std::int64_t start =
      cta.product_unit.reserve(std::max(state.clock, state.product_end), cycles);
  state.product_end = start + cycles;
  ends_at(state.product_end);
  if (!context_.draws) return;
  trace_.ctas[cta.trace].products.push_back(
      {start, state.product_end, text(operands), instruction.where()});
}

void LaunchTrace::wait_for_products(const Warp& warp, WarpState& state,
                                    const Instruction& instruction) {
  const std::int64_t groups = warp.product_groups - instruction.value;
  for (const Pending& work : state.products) {
    if (context_.draws && work.group < groups) {
      trace_of(state).flights[work.flight].complete = true;
    }
  }
  wait_until(state, instruction,
             text([&] { return "waits for the " + trace_.launches[number_].product_unit; }),
             {end_of(state.products, groups, &Pending::end), text([&] {
                return fmt::format("at most {} committed groups are in flight", instruction.value);
              })});
  state.products.erase(std::remove_if(state.products.begin(), state.products.end(),
                                      [&](const Pending& work) { return work.group < groups; }),
                       state.products.end());
  merge(state, TraceSlice::Kind::barrier, instruction, 0);
}

namespace {

// Of a box what the tensor has. Coordinates of ragged ones are not places in it.
std::int64_t bytes_within(const TensorMap& map, const std::array<std::int64_t, 5>& at) {
  if (map.ragged_axis >= 0) return map.box_bytes();
  std::int64_t bytes = map.element_bytes;
  for (int axis = 0; axis < map.rank; ++axis) {
    const std::int64_t end = std::min(at[axis] + map.box[axis], map.extents[axis]);
    bytes *= std::max<std::int64_t>(end - std::max<std::int64_t>(at[axis], 0), 0);
  }
  return bytes;
}

}  // namespace

// A load is drawn once for each CTA that receives it (load_issued).
void LaunchTrace::issue_copy(const Warp& warp, WarpState& state, const Instruction& instruction) {
  merge(state, TraceSlice::Kind::issue, instruction, 0);
  if (ir::info(instruction.op).writes(ir::Memory::shared) || warp.stores.empty()) return;
  const Store& store = *warp.stores.back();
  const TensorMap& map = launch_->kernel.maps[launch_->kernel.transfers[instruction.detail].map];
  const std::int64_t cycles = port_cycles(launch_->kernel, map.box_bytes());
  CtaState& cta = state_of(*warp.cta);
  std::int64_t read = cta.port.reserve(state.clock, cycles) + cycles;
  std::int64_t written = std::max(read, state.clock + launch_->kernel.target->rates.store_latency);
  if (const int peer = peer_with(store.to); peer >= 0) {
    const bool adds = ir::info(instruction.op).reads(ir::Memory::global);
    const std::int64_t bytes = bytes_within(map, store.coordinates);
    read = written = std::max(read, push(cta, peer, bytes, adds, state.clock));
  }
  ends_at(written);
  state.stores.push_back({warp.store_groups, read, written, 0});
  if (!context_.draws) return;
  const std::string place = place_of(instruction.object, store.address);
  TraceFlight flight;
  flight.kind = TraceFlight::Kind::store;
  flight.issue = state.clock;
  flight.end = written;
  flight.name = context_.text(fmt::format("{} to {}", place, map.name));
  flight.place = context_.text(place);
  flight.detail = context_.text(fmt::format("{}{} {} bytes, group {}", map.name,
                                            coordinates(store.coordinates, map.rank),
                                            map.box_bytes(), warp.store_groups));
  flight.iteration = iteration_text(state, warp.pc);
  flight.issuer = warp.index;
  flight.where = instruction.where();
  state.stores.back().flight = draw(cta, flight);
}

void LaunchTrace::wait_for_groups(const Warp& warp, WarpState& state,
                                  const Instruction& instruction) {
  switch (ir::as<ir::GroupWaitOp>(instruction.op)) {
    case ir::GroupWaitOp::bulk_wait:
      return wait_for_stores(warp, state, instruction);
    case ir::GroupWaitOp::wgmma_wait:
      return wait_for_products(warp, state, instruction);
  }
}

void LaunchTrace::wait_for_stores(const Warp& warp, WarpState& state,
                                  const Instruction& instruction) {
  const bool read = instruction.detail != 0;
  const std::int64_t groups = warp.store_groups - instruction.value;
  wait_until(
      state, instruction,
      text([&] { return read ? "waits until bulk stores have read" : "waits for bulk stores"; }),
      {end_of(state.stores, groups, read ? &Pending::first_end : &Pending::end),
       text([&] { return fmt::format("at most {} groups are under way", instruction.value); })});
  const auto is_over = [&](const Pending& work) {
    return work.group < groups && (!read || (!context_.draws && work.end <= state.clock));
  };
  for (const Pending& work : state.stores) {
    if (context_.draws && is_over(work)) trace_of(state).flights[work.flight].complete = true;
  }
  state.stores.erase(std::remove_if(state.stores.begin(), state.stores.end(), is_over),
                     state.stores.end());
  merge(state, TraceSlice::Kind::barrier, instruction, 0);
}

}  // namespace tilewright::simulator
