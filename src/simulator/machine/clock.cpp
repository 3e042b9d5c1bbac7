#include "simulator/machine/clock.h"

#include "simulator/vector_clones.h"

namespace tilewright::simulator {
namespace {

TW_VECTOR_CLONES void raise_all(std::size_t count, const Epoch* least, Epoch* to) {
  TW_INDEPENDENT
  for (std::size_t i = 0; i < count; ++i) to[i] = to[i] > least[i] ? to[i] : least[i];
}

}  // namespace

void Clock::raise(std::size_t count, const Epoch* least, Epoch* to) { raise_all(count, least, to); }

}  // namespace tilewright::simulator
