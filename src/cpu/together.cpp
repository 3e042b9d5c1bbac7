#include "cpu/together.h"

#include <algorithm>

#include "cpu/layout.h"
#include "cpu/thread_memory.h"
#include "cpu/tile_uses.h"

namespace tilewright::cpu {
namespace {

std::int64_t arena_bytes(const Program& program) {
  return round_up(program.arena_bytes, kAlignment);
}
std::int64_t shared_bytes(const Program& program) {
  return round_up(program.scratch_bytes + program.packs_bytes, kAlignment);
}

// Whether its products read tensors, and all of them have few rows at most.
bool reads_for_few_rows(const Program& program, const For& loop) {
  constexpr std::int64_t kMostRows = 16;
  bool reads = false, has_few = true;
  for_operations(loop.body, [&](const Operation& operation) {
    const Load* const load = std::get_if<Load>(&operation);
    const Multiply* const product = std::get_if<Multiply>(&operation);
    reads = reads || (load != nullptr && load->in_place);
    if (product == nullptr) return;
    has_few =
        has_few && program.tiles[product->a].shape[product->a_transposed ? 1 : 0] <= kMostRows;
  });
  return reads && has_few;
}

}  // namespace

const For* loop_over_tensors(const Program& program) {
  if (program.adds) return nullptr;
  for (const Operation& operation : program.body) {
    const For* const loop = std::get_if<For>(&operation);
    if (loop != nullptr && reads_for_few_rows(program, *loop)) return loop;
  }
  return nullptr;
}

bool goes_over_pages(const For& loop, const Arguments& arguments) {
  return std::any_of(loop.body.begin(), loop.body.end(), [&](const Operation& operation) {
    const Load* const load = std::get_if<Load>(&operation);
    if (load == nullptr || !load->in_place || load->box.tensor >= arguments.tensors.size()) {
      return false;
    }
    const std::vector<std::int64_t>& sizes = load->box.sizes;
    const auto rows = std::find_if(sizes.begin(), sizes.end(), [](auto size) { return size != 0; });
    const TensorArgument& tensor = arguments.tensors[load->box.tensor];
    return tensor.strides[static_cast<std::size_t>(rows - sizes.begin())] * size_of(tensor.dtype) >=
           kPage;
  });
}

Together::Together(const Launch& launch, const For* loop)
    : launch_(launch),
      loop_(loop),
      scratch_(thread_memory(shared_bytes(*launch.program) +
                                 arena_bytes(*launch.program) * (loop == nullptr ? 1 : kMost),
                             launch.where)),
      arenas_(scratch_ + shared_bytes(*launch.program)),
      packs_(*launch.program, launch.grid, scratch_ + launch.program->scratch_bytes) {
  engines_.reserve(loop == nullptr ? 1 : kMost);
}

Engine& Together::engine(std::size_t i) {
  if (i == engines_.size()) {
    engines_.emplace_back(launch_,
                          arenas_ + arena_bytes(*launch_.program) * static_cast<std::int64_t>(i),
                          scratch_, packs_);
  }
  return engines_[i];
}

void Together::run(std::int64_t begin, std::int64_t end) {
  if (loop_ == nullptr || end - begin < 2) {
    for (; begin < end; ++begin) engine(0).run_block(begin);
    return;
  }
  // The first two tell whether it is worth it.
  const auto is_worth_it = [&] { return engine(1).is_beside(engine(0)); };
  std::size_t begun = 0;
  for (; begin < end && (begun < 2 || is_worth_it()); ++begin) {
    engine(begun++).begin_rounds(begin, *loop_);
  }
  const std::size_t together = is_worth_it() ? begun : 1;
  for (std::size_t first = 0; first < begun; first += together) {
    const std::size_t last = first + together;
    for (bool is_under_way = true; is_under_way;) {
      is_under_way = false;
      for (std::size_t i = first; i < last; ++i) {
        is_under_way = engine(i).run_round() || is_under_way;
      }
    }
    for (std::size_t i = first; i < last; ++i) engine(i).end_rounds();
  }
  for (; begin < end; ++begin) engine(0).run_block(begin);
}

}  // namespace tilewright::cpu
