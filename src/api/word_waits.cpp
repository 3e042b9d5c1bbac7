#include "api/word_waits.h"

#include <string>
#include <vector>

#include "ir/memory_order.h"
#include "tilewright/asynchronous.h"
#include "tilewright/ranks.h"

namespace tilewright {
namespace {

Kernel wait_for_word(Compare compare) {
  Kernel kernel("wait_for_word_" + std::string(ir::name_of(compare)));
  const Tensor word = kernel.inout("word", i32, {1});
  const Scalar value = kernel.scalar("value", i32);
  kernel.ctas(1);
  kernel.roles({role("wait", warps(1), registers(24), [&] {
    wait_flag(word(0), compare, value, {Semantics::acquire, Scope::system});
  })});
  return kernel;
}

}  // namespace

void WordWaits::build(const ir::Program& recorded, const ProgramRanks& ranks,
                      const compiler::BuildOptions& options) {
  for (const ir::ProgramOperation& operation : recorded.operations) {
    if (operation.kind != ir::ProgramOperation::Kind::wait) continue;
    const int rank = recorded.streams[static_cast<std::size_t>(operation.stream)].rank;
    if (by_driver(nullptr, operation.compare, 0) || !ranks.runs(rank)) continue;
    std::unique_ptr<compiler::CompiledKernel>& made = kernels_[{rank, operation.compare}];
    if (made) continue;
    made = compiler::compile_for_device(wait_for_word(operation.compare).finish(),
                                        ranks.device(rank), options);
  }
}

std::optional<runtime::WordOperation> WordWaits::by_driver(std::byte* word, Compare compare,
                                                           std::int32_t value) {
  using Kind = runtime::WordOperation::Kind;
  if (compare == Compare::ge) return {{Kind::wait_at_least, word, value}};
  if (compare == Compare::eq) return {{Kind::wait_equal, word, value}};
  if (compare != Compare::gt) return {};
  const auto next = static_cast<std::int32_t>(static_cast<std::uint32_t>(value) + 1);
  return {{Kind::wait_at_least, word, next}};  // modulo 2^32
}

void WordWaits::queue_kernel(int rank, const runtime::Stream& stream, std::byte* word,
                             Compare compare, std::int32_t value) const {
  Arguments arguments;
  arguments.tensors.push_back({"word", i32, {1}, {1}, word});
  arguments.scalars.push_back(value);
  kernels_.at({rank, compare})->launch(stream, arguments);
}

}  // namespace tilewright
