#include "kernels/collectives_sm90.h"

#include "kernels/rank_words.h"
#include "tilewright/function_ref.h"
#include "tilewright/plan_case.h"
#include "tilewright/target.h"

namespace tilewright::kernels {
namespace {

// So many warpgroups of a CTA move vectors, each a block at a time, 64 bytes a thread.
constexpr int kMovers = 4;
constexpr int kMovedBytes = 128 * 64;

// What the collectives' kernels have in common: a CTA's blocks of vectors.
class VectorMover {
 public:
  VectorMover(Kernel& kernel, const Collective& c)
      : c_(c), kernel_(kernel), all_warps_(kernel, 128 * kMovers) {}

  // With so many elements to each of which something is done.
  void record(const Dim& elements, FunctionRef<void(const Index& group)> body) {
    const Dim most = min(multiprocessors(), RanksArrive::kCtas);
    kernel_.ctas(max(min(most, ceil_div(elements, block())), 1));
    const TargetLimits& limits = target_limits("sm_90a");
    const int all = launch_registers(limits, kMovers * limits.group_threads());
    kernel_.roles({role("move", warpgroups(kMovers), registers(all), body)});
  }

  int block() const { return kMovedBytes / size_of(c_.dtype); }
  // This warpgroup's blocks of a vector.
  void each_block(const Index& group, const Dim& elements,
                  FunctionRef<void(const Block&)> body) const {
    const Index first = cta_index() + cta_count() * group;
    for (Index i : range(first, ceil_div(elements, block()), cta_count() * kMovers)) {
      body(elements.block(i, block()));
    }
  }
  // A block of a part as one of the whole, where the part is the `number`-th of its length.
  Block of_whole(const Block& in_part, const Index& number, const Dim& part,
                 const Dim& whole) const {
    const Index first = number * part;
    return {first + in_part.start(), block(), min(first + part, whole)};
  }
  static void in_one_warp(const Index& group, FunctionRef<void()> body) {
    when(group == 0, [&] { when(warp_index() == 0, body); });
  }
  // For who waits for these words what all warps of the CTA have stored is there.
  void tell(const Index& group, FunctionRef<void()> words) {
    all_warps_.sync();
    in_one_warp(group, words);
  }
  void each_other(FunctionRef<void(const Index& rank)> body) const {
    each_other_rank(kernel_, c_.ranks, body);
  }

 protected:
  const Collective c_;
  Kernel& kernel_;

 private:
  NamedBarrier all_warps_;
};

// Sums over the ranks of vectors that they push into each other's slots. There are slots for two
// runs, since a rank may be a run ahead; not for three, since it waits for a word of each.
class SlotSums : public VectorMover {
 public:
  SlotSums(Kernel& kernel, const Collective& c, const Dim& part)
      : VectorMover(kernel, c),
        slots_(kernel.symmetric("slots", c.dtype, {2, c.ranks, part})),
        arrived_(kernel, c.ranks) {}

  void push(const Index& to, const Block& block, const Tile& own) const {
    store(slots_.at(to)(half(), kernel_.rank(), block), own);
  }
  void meet(const Index& group) {
    tell(group, [&] { arrived_.tell_all(); });
    arrived_.wait_all();
  }
  // Of what the ranks have of a block, in their order, rounded once.
  Tile sum(const Block& in_slot, const Tile& own) const {
    const Index me = kernel_.rank();
    Var sum{zeros({block()})};
    const auto add = [&](const Index& rank) {
      sum = sum + load(slots_(half(), rank, in_slot)).cast(f32);
    };
    for (Index rank : range(me)) add(rank);
    sum = sum + own.cast(f32);
    for (Index rank : range(me + 1, c_.ranks)) add(rank);
    return Tile(sum).cast(c_.dtype);
  }

 private:
  Index half() const { return kernel_.epoch() % 2; }
  Tensor slots_;
  RanksArrive arrived_;
};

Dim vector_dim(Kernel& kernel, const Collective& c) {
  return kernel.dim("count", multiple_of(vector_unit(c)));
}

}  // namespace

int vector_unit(const Collective& c) { return 16 / size_of(c.dtype); }

Dim part_of_vector(const Collective& c, const Dim& count, int ranks) {
  const int unit = vector_unit(c);
  return ceil_div(count, unit * ranks) * unit;
}

Kernel all_gather_kernel_sm90(const Collective& c, const Caller& caller) {
  Kernel kernel(caller.function);
  const Dim count = vector_dim(kernel, c);
  const Tensor X = kernel.in("X", c.dtype, {count});
  const Tensor Y = kernel.symmetric("Y", c.dtype, {c.ranks, count});
  const RanksBegin begun(kernel, c.ranks);
  const RanksArrive arrived(kernel, c.ranks);
  VectorMover mover(kernel, c);
  mover.record(count, [&](const Index& group) {
    const Index me = kernel.rank();
    VectorMover::in_one_warp(group, [&] { begun.tell(); });
    begun.wait();
    mover.each_block(group, count, [&](const Block& block) {
      const Tile own = load(X(block));
      mover.each_other([&](const Index& to) { store(Y.at(to)(me, block), own); });
      store(Y(me, block), own);
    });
    mover.tell(group, [&] { arrived.tell_all(); });
    arrived.wait_all();
  });
  return kernel;
}

Kernel reduce_scatter_kernel_sm90(const Collective& c, const Caller& caller) {
  Kernel kernel(caller.function);
  const Dim count = vector_dim(kernel, c);
  const Tensor X = kernel.in("X", c.dtype, {c.ranks, count});
  const Tensor Y = kernel.out("Y", c.dtype, {count});
  SlotSums slots(kernel, c, count);
  slots.record(count, [&](const Index& group) {
    slots.each_block(group, count, [&](const Block& block) {
      slots.each_other([&](const Index& to) { slots.push(to, block, load(X(to, block))); });
    });
    slots.meet(group);
    slots.each_block(group, count, [&](const Block& block) {
      store(Y(block), slots.sum(block, load(X(kernel.rank(), block))));
    });
  });
  return kernel;
}

namespace {

Kernel all_reduce_at_once(const Collective& c, const Caller& caller) {
  Kernel kernel(caller.function);
  const Dim count = vector_dim(kernel, c);
  const Tensor X = kernel.in("X", c.dtype, {count}), Y = kernel.out("Y", c.dtype, {count});
  SlotSums slots(kernel, c, count);
  slots.record(count, [&](const Index& group) {
    slots.each_block(group, count, [&](const Block& block) {
      const Tile own = load(X(block));
      slots.each_other([&](const Index& to) { slots.push(to, block, own); });
    });
    slots.meet(group);
    slots.each_block(group, count, [&](const Block& block) {
      store(Y(block), slots.sum(block, load(X(block))));
    });
  });
  return kernel;
}

// Each rank sums a part and hands the sum to all. Others take it in this run: who has told that its
// summands are there has begun the run.
Kernel all_reduce_in_parts(const Collective& c, const Caller& caller) {
  Kernel kernel(caller.function);
  const Dim count = vector_dim(kernel, c), part = part_of_vector(c, count, c.ranks);
  const Tensor X = kernel.in("X", c.dtype, {count});
  const Tensor Y = kernel.symmetric("Y", c.dtype, {count});
  SlotSums slots(kernel, c, part);
  const RanksArrive summed(kernel, c.ranks, "summed");
  slots.record(part, [&](const Index& group) {
    const Index me = kernel.rank();
    const auto whole = [&](const Block& block, const Index& number) {
      return slots.of_whole(block, number, part, count);
    };
    slots.each_block(group, part, [&](const Block& block) {
      slots.each_other([&](const Index& to) { slots.push(to, block, load(X(whole(block, to)))); });
    });
    slots.meet(group);
    slots.each_block(group, part, [&](const Block& block) {
      const Block own = whole(block, me);
      const Tile sum = slots.sum(block, load(X(own)));
      slots.each_other([&](const Index& to) { store(Y.at(to)(own), sum); });
      store(Y(own), sum);
    });
    slots.tell(group, [&] { summed.tell_all(); });
    summed.wait_all();
  });
  return kernel;
}

}  // namespace

Kernel all_reduce_kernel_sm90(const Collective& c, Shots shots, const Caller& caller) {
  return plan_case("two shots", shots == Shots::two) ? all_reduce_in_parts(c, caller)
                                                     : all_reduce_at_once(c, caller);
}

namespace {

Kernel broadcast_at_once(const Collective& c, int root, const Caller& caller) {
  Kernel kernel(caller.function);
  const Dim count = vector_dim(kernel, c);
  const Tensor X = kernel.in("X", c.dtype, {count});
  const Tensor Y = kernel.symmetric("Y", c.dtype, {count});
  const RanksBegin begun(kernel, c.ranks);
  const RanksArrive arrived(kernel, c.ranks);
  VectorMover mover(kernel, c);
  mover.record(count, [&](const Index& group) {
    VectorMover::in_one_warp(group, [&] { begun.tell(); });
    when(
        kernel.rank() == root,
        [&] {
          begun.wait();
          mover.each_block(group, count, [&](const Block& block) {
            const Tile values = load(X(block));
            mover.each_other([&](const Index& to) { store(Y.at(to)(block), values); });
            store(Y(block), values);
          });
          mover.tell(group, [&] { arrived.tell_all(); });
        },
        [&] { arrived.wait(root); });
  });
  return kernel;
}

// Each rank but the root gets a part from it, and hands it on to those that are neither.
Kernel broadcast_in_parts(const Collective& c, int root, const Caller& caller) {
  Kernel kernel(caller.function);
  const Dim count = vector_dim(kernel, c), part = part_of_vector(c, count, c.ranks - 1);
  const Tensor X = kernel.in("X", c.dtype, {count});
  const Tensor Y = kernel.symmetric("Y", c.dtype, {count});
  const RanksBegin begun(kernel, c.ranks);
  const RanksArrive arrived(kernel, c.ranks), handed_on(kernel, c.ranks, "handed_on");
  VectorMover mover(kernel, c);
  const auto of_rank = [&](const Block& block, const Index& rank) {
    return mover.of_whole(block, (rank + (c.ranks - 1 - root)) % c.ranks, part, count);
  };
  const auto send_parts = [&](const Index& group) {
    mover.each_block(group, part, [&](const Block& block) {
      mover.each_other([&](const Index& to) {
        const Block own = of_rank(block, to);
        const Tile values = load(X(own));
        store(Y.at(to)(own), values);
        store(Y(own), values);
      });
    });
    mover.tell(group, [&] { arrived.tell_all(); });
  };
  const auto hand_on = [&](const Index& group) {
    const auto each_third = [&](FunctionRef<void(const Index&)> body) {
      mover.each_other([&](const Index& rank) { when(rank != root, [&] { body(rank); }); });
    };
    arrived.wait(root);
    if (!plan_case("ranks that are neither", c.ranks > 2)) return;
    mover.each_block(group, part, [&](const Block& block) {
      const Block own = of_rank(block, kernel.rank());
      const Tile values = load(Y(own));
      each_third([&](const Index& to) { store(Y.at(to)(own), values); });
    });
    mover.tell(group, [&] { each_third([&](const Index& to) { handed_on.tell(to); }); });
    each_third([&](const Index& from) { handed_on.wait(from); });
  };
  mover.record(part, [&](const Index& group) {
    VectorMover::in_one_warp(group, [&] { begun.tell(); });
    begun.wait();
    when(
        kernel.rank() == root, [&] { send_parts(group); }, [&] { hand_on(group); });
  });
  return kernel;
}

}  // namespace

Kernel broadcast_kernel_sm90(const Collective& c, int root, Shots shots, const Caller& caller) {
  return plan_case("two shots", shots == Shots::two) ? broadcast_in_parts(c, root, caller)
                                                     : broadcast_at_once(c, root, caller);
}

}  // namespace tilewright::kernels
