#include "simulator/faults/equivalence.h"
#include "simulator/faults/families.h"

// Fences between registers, shared memory and the asynchronous units.
namespace tilewright::simulator {

using ir::Op;

namespace {

enum class Consumer { none, store, product, release };

// What the fence orders the writes before it with: the first operation behind it, in the order of
// the text, by which an asynchronous unit may touch shared memory.
Consumer consumer_of(const Sites& sites, const Site& fence) {
  for (std::size_t i = fence.number + 1; i < sites.all().size(); ++i) {
    const Site& site = sites.at(i);
    if (site.role != fence.role) break;
    const ir::Completion completion = ir::info(site.op()).completion;
    if (completion == ir::Completion::bulk) return Consumer::store;
    if (completion == ir::Completion::products) return Consumer::product;
    if (site.op() == Op::mbarrier_arrive) return Consumer::release;
  }
  return Consumer::none;
}

std::vector<Mutant> unfenced(const Sites& sites, std::initializer_list<Consumer> consumers) {
  std::vector<Mutant> mutants;
  for (const Site* fence : sites.of(Op::fence_proxy_async)) {
    const Consumer consumer = consumer_of(sites, *fence);
    for (const Consumer wanted : consumers) {
      if (consumer != wanted) continue;
      mutants.push_back(left_out(sites, *fence));
      if (consumer == Consumer::release) {
        mutants.back().equivalent =
            "it orders what threads read with what is copied there next: by rule a fault in strict "
            "mode alone";
      }
    }
  }
  return mutants;
}

}  // namespace

std::vector<Mutant> seed_unfenced_store(const Sites& sites) {
  return unfenced(sites, {Consumer::store});
}

std::vector<Mutant> seed_unfenced_product(const Sites& sites) {
  return unfenced(sites, {Consumer::product, Consumer::release, Consumer::none});
}

std::vector<Mutant> seed_wgmma_fence(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site* fence : sites.of(Op::wgmma_fence)) {
    mutants.push_back(left_out(sites, *fence));
    mutants.back().equivalent = nothing_touched(sites, *fence);
    mutants.back().in_later_turns = touched_in_later_turns_alone(sites, *fence);
  }
  return mutants;
}

}  // namespace tilewright::simulator
