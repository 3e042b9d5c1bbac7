#pragma once

#include "tilewright/function_ref.h"
#include "tilewright/ranks.h"

// How the CTAs of ranks that run one kernel together tell each other how far they are.
namespace tilewright::kernels {

inline constexpr MemoryOrder kTell{Semantics::release, Scope::system};
inline constexpr MemoryOrder kLearn{Semantics::acquire, Scope::system};

// The ranks but this one, the next one first.
inline void each_other_rank(Kernel& kernel, int ranks, FunctionRef<void(const Index& rank)> body) {
  const Index me = kernel.rank();
  for (Index distance : range(1, ranks)) body((me + distance) % ranks);
}

// That every rank has begun a run. What came before in its stream has ended then: others may write
// into the memory that it works on.
class RanksBegin {
 public:
  RanksBegin(Kernel& kernel, int ranks)
      : kernel_(kernel), ranks_(ranks), words_(kernel.symmetric("begun", i32, {ranks})) {}
  // How many words a rank has.
  static Dim words(int ranks) { return ranks; }

  // In one warp of every CTA.
  void tell() const {
    const Index me = kernel_.rank(), turn = kernel_.epoch();
    when(cta_index() == 0, [&] {
      each_other_rank(kernel_, ranks_,
                      [&](const Index& to) { store_index(words_.at(to)(me), turn, kTell); });
    });
  }
  // In each warp that writes there; by TMA it does so behind fence_proxy_async_global.
  void wait() const {
    const Index turn = kernel_.epoch();
    each_other_rank(kernel_, ranks_,
                    [&](const Index& from) { wait_flag(words_(from), Compare::ge, turn, kLearn); });
  }

 private:
  Kernel& kernel_;
  int ranks_;
  Tensor words_;
};

// That what a CTA of one rank sends has arrived: for each rank and each of its CTAs a word, which
// the CTA of the same number waits for. A rank has as many CTAs as every other, at most kCtas.
class RanksArrive {
 public:
  static constexpr int kCtas = 160;
  RanksArrive(Kernel& kernel, int ranks, const char* name = "arrived")
      : kernel_(kernel), ranks_(ranks), words_(kernel.symmetric(name, i32, {words(ranks)})) {}
  static Dim words(int ranks) { return kCtas * ranks; }

  // In the lane that has sent, or of which it is known that it knows of what was sent.
  void tell(const Index& to) const {
    store_index(words_.at(to)(word(kernel_.rank())), kernel_.epoch(), kTell);
  }
  void tell_all() const {
    each_other_rank(kernel_, ranks_, [&](const Index& to) { tell(to); });
  }
  void wait(const Index& from) const {
    wait_flag(words_(word(from)), Compare::ge, kernel_.epoch(), kLearn);
  }
  void wait_all() const {
    each_other_rank(kernel_, ranks_, [&](const Index& from) { wait(from); });
  }

 private:
  Index word(const Index& from) const { return from * kCtas + cta_index(); }

  Kernel& kernel_;
  int ranks_;
  Tensor words_;
};

}  // namespace tilewright::kernels
