#include "cpu/together.h"

#include <algorithm>
#include <exception>

#include "cpu/layout.h"
#include "cpu/thread_memory.h"
#include "cpu/tile_uses.h"
#include "support/diagnostic.h"

namespace tilewright::cpu {
namespace {

std::int64_t arena_bytes(const Program& program) {
  return round_up(program.arena_bytes, kAlignment);
}
std::int64_t shared_bytes(const Program& program) {
  return round_up(program.scratch_bytes + program.packs_bytes, kAlignment);
}

// As many arenas as take little beside a program, and may be there.
std::size_t most_together(const Program& program, const For* loop) {
  constexpr std::int64_t kBytes = 8 << 20;
  if (loop == nullptr) return 1;
  return static_cast<std::size_t>(std::clamp<std::int64_t>(
      kBytes / std::max<std::int64_t>(arena_bytes(program), 1), 1, Together::kMost));
}

// For so many arenas, or for one where there is no such memory.
std::byte* memory_of(const Launch& launch, std::size_t& most) {
  const Program& program = *launch.program;
  if (most > 1) {
    try {
      return thread_memory(
          shared_bytes(program) + arena_bytes(program) * static_cast<std::int64_t>(most),
          launch.where);
    } catch (const Error&) {
      most = 1;
    }
  }
  return thread_memory(shared_bytes(program) + arena_bytes(program), launch.where);
}

// Whether its products read tensors, and all of them have few rows at most: tiles of few queries
// have 16 rows, of which kFewRows may exist.
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
    return rows != sizes.end() &&
           tensor.strides[static_cast<std::size_t>(rows - sizes.begin())] * size_of(tensor.dtype) >=
               kPage;
  });
}

Together::Together(const Launch& launch, const For* loop)
    : launch_(launch),
      loop_(loop),
      most_(most_together(*launch.program, loop)),
      scratch_(memory_of(launch, most_)),
      arenas_(scratch_ + shared_bytes(*launch.program)),
      packs_(*launch.program, launch.grid, scratch_ + launch.program->scratch_bytes) {
  engines_.reserve(most_);
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
  while (begin < end) {
    if (most_ > 1 && end - begin > 1) {
      begin = run_some(begin, end);
    } else {
      engine(0).run_block(begin++);
    }
  }
}

std::int64_t Together::run_some(std::int64_t begin, std::int64_t end) {
  // Of those that are under way. One that fails ends those behind it, and those before it go on.
  std::size_t count = 0;
  std::exception_ptr failure;
  const auto go_on = [&](std::size_t i, auto step) {
    try {
      return step(engine(i));
    } catch (...) {
      failure = std::current_exception();
      count = i;
      return false;
    }
  };
  bool are_beside = true;
  while (are_beside && failure == nullptr && count < most_ &&
         begin + static_cast<std::int64_t>(count) < end) {
    const std::size_t i = count++;
    go_on(i, [&](Engine& own) {
      own.begin_rounds(begin + static_cast<std::int64_t>(i), *loop_);
      return true;
    });
    are_beside = i == 0 || failure != nullptr || engine(i).is_beside(engine(i - 1));
  }
  const std::int64_t behind = begin + static_cast<std::int64_t>(count);
  // Where even the first two are not, the others will not be either.
  if (!are_beside && count == 2) most_ = 1;
  const std::size_t together = most_ == 1 ? 1 : count;
  if (together > went_together_) went_together_ = together;
  for (std::size_t first = 0; first < count; first += together) {
    for (bool is_under_way = true; is_under_way;) {
      is_under_way = false;
      for (std::size_t i = first; i < std::min(first + together, count); ++i) {
        is_under_way = go_on(i, [](Engine& own) { return own.run_round(); }) || is_under_way;
      }
    }
    for (std::size_t i = first; i < std::min(first + together, count); ++i) {
      go_on(i, [](Engine& own) {
        own.end_rounds();
        return true;
      });
    }
  }
  if (failure != nullptr) std::rethrow_exception(failure);
  return behind;
}

}  // namespace tilewright::cpu
