#include "api/run_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "ir/memory_order.h"
#include "support/diagnostic.h"
#include "tilewright/asynchronous.h"
#include "tilewright/ranks.h"

namespace tilewright {
namespace {

using Kind = ir::ProgramOperation::Kind;

Kernel count_run() {
  Kernel kernel("count_run");
  const Dim count = kernel.dim("count");
  const Tensor now = kernel.inout("now", i32, {count}), step = kernel.in("step", i32, {count});
  constexpr int kBlock = 128;
  const auto [x] = kernel.grid(ceil_div(count, kBlock));
  const Block block = count.block(x, kBlock);
  const Tile more = load(step(block)), before = load(now(block));
  store(now(block), before + more);
  return kernel;
}

// One warp, with a word and the word that has its value.
template <typename Body>
Kernel word_kernel(const std::string& name, const Body& body) {
  Kernel kernel(name);
  const Tensor word = kernel.inout("word", i32, {1}), value = kernel.in("value", i32, {1});
  kernel.ctas(1);
  kernel.roles(
      {role("only", warps(1), registers(24), [&] { body(word(0), load_index(value(0))); })});
  return kernel;
}

void refuse_counted_scalars(const ir::Program& program, const ir::ProgramOperation& launch) {
  for (const RunNumber& scalar : launch.scalars) {
    if (scalar.per_run == 0) continue;
    Diagnostic(
        launch.where,
        fmt::format("launch: a scalar of kernel {} depends on the number of the run, which is "
                    "to be kept on the GPUs",
                    program.kernels[launch.kernel]->name))
        .token("launch")
        .fix("Kernel::epoch in place of the scalar; or count the runs on the host")
        .raise();
  }
}

int rank_of(const ir::Program& program, const ir::ProgramOperation& operation) {
  return program.streams[static_cast<std::size_t>(operation.stream)].rank;
}

// A copy engine writes what is in another GPU's memory.
bool is_copied(const ir::Program& program, const ir::ProgramOperation& operation) {
  return operation.kind == Kind::write && operation.to.rank != rank_of(program, operation);
}

// What a stream writes, and where a kernel waits for it.
struct AwaitedWrite {
  const ir::ProgramOperation* write;
  const ir::Operation* wait;
  const std::string* words;
};
std::vector<AwaitedWrite> awaited_writes(const ir::Program& program,
                                         const ir::ProgramOperation& launch) {
  std::vector<AwaitedWrite> awaited;
  const ir::Kernel& kernel = *program.kernels[static_cast<std::size_t>(launch.kernel)];
  ir::for_each(kernel.body, [&](const ir::Operation& operation) {
    if (operation.op != ir::Op::wait_flag) return;
    const ir::Parameter* const words = kernel.parameter_of(operation.operands[0]);
    if (words == nullptr) return;
    const auto number = static_cast<std::size_t>(words - kernel.parameters.data());
    if (number >= launch.tensors.size()) return;
    const ir::ProgramPart& passed = launch.tensors[number];
    for (const ir::ProgramOperation& write : program.operations) {
      if (write.kind == Kind::write && write.to.buffer == passed.buffer &&
          write.to.rank == passed.rank) {
        awaited.push_back({&write, &operation, &words->name});
      }
    }
  });
  return awaited;
}

// A kernel that waits for words may have all multiprocessors. What waits for a word, and what
// writes one of its own GPU, is a kernel too: it has to run before, where a word that is waited for
// comes behind it.
void refuse_crowded_words(const ir::Program& program, const ir::ProgramOperation& launch) {
  for (const AwaitedWrite& awaited : awaited_writes(program, launch)) {
    const int rank = rank_of(program, *awaited.write);
    const ir::ProgramOperation* const crowding = std::find_if(
        program.operations.data(), program.operations.data() + program.operations.size(),
        [&](const ir::ProgramOperation& other) {
          return rank_of(program, other) == rank && waits_for_streams(program, other);
        });
    for (const ir::ProgramOperation* each = program.operations.data(); each <= awaited.write;
         ++each) {
      if (each->stream != awaited.write->stream || !is_word_kernel(program, *each)) continue;
      const bool is_of_run_before = each->value.per_run == 1 && each->value.base < 0;
      const bool may_be_awaited =
          each->stream == crowding->stream || each->kind == Kind::write || is_of_run_before;
      if (each < crowding && may_be_awaited) continue;
      Diagnostic(launch.where,
                 fmt::format("launch: kernel {} waits for words of {} that a stream writes. Where "
                             "the GPUs count the runs, a kernel {} before, which may find no "
                             "multiprocessor beside it",
                             program.kernels[static_cast<std::size_t>(launch.kernel)]->name,
                             *awaited.words,
                             each->kind == Kind::write ? "writes a word" : "waits for a word"))
          .token("launch")
          .note(awaited.wait->where, "it waits here")
          .note(each->where, "this would be that kernel")
          .fix("a schedule whose streams wait before they launch; or count the runs on the host")
          .raise();
    }
  }
}

// What an operation is in the first run, and how much more in each run behind it.
std::pair<std::int32_t, std::int32_t> number_of(const ir::ProgramOperation& operation,
                                                std::int64_t run) {
  if (operation.kind == Kind::launch) {
    return {static_cast<std::int32_t>(operation.epoch + (run - 1) * operation.epochs_per_run),
            static_cast<std::int32_t>(operation.epochs_per_run)};
  }
  const std::int32_t value = ir::word_value(operation.value, run);
  return {value, static_cast<std::int32_t>(static_cast<std::int64_t>(operation.value.per_run))};
}

TensorArgument vector_of(const char* name, std::int64_t count, const void* data) {
  return {name, i32, {count}, {1}, static_cast<std::byte*>(const_cast<void*>(data)), {}};
}

}  // namespace

bool waits_for_streams(const ir::Program& program, const ir::ProgramOperation& operation) {
  return operation.kind == Kind::launch && !awaited_writes(program, operation).empty();
}

bool is_word_kernel(const ir::Program& program, const ir::ProgramOperation& operation) {
  return operation.kind == Kind::wait ||
         (operation.kind == Kind::write && !is_copied(program, operation));
}

Kernel write_counted_word() {
  return word_kernel("write_counted_word", [](const TensorView& word, const Index& value) {
    store_index(word, value, {Semantics::release, Scope::system});
  });
}

Kernel wait_for_counted_word(Compare compare) {
  return word_kernel("wait_for_counted_word_" + std::string(ir::name_of(compare)),
                     [compare](const TensorView& word, const Index& value) {
                       wait_flag(word, compare, value, {Semantics::acquire, Scope::system});
                     });
}

CountKernels::CountKernels(const ir::Program& recorded, const ProgramRanks& ranks,
                           compiler::BuildOptions options) {
  for (const int rank : ranks.own()) {
    counts_[rank] = compiler::compile_for_device(count_run().finish(), ranks.device(rank), options);
  }
  options.epoch_words = true;
  for (const ir::ProgramOperation& operation : recorded.operations) {
    const int rank = rank_of(recorded, operation);
    if (!ranks.runs(rank)) continue;
    const auto compile = [&](Compiled& made, const ir::Kernel& kernel) {
      if (!made) made = compiler::compile_for_device(kernel, ranks.device(rank), options);
    };
    if (operation.kind == Kind::launch) {
      refuse_counted_scalars(recorded, operation);
      refuse_crowded_words(recorded, operation);
      compile(launched_[{rank, operation.kernel}],
              *recorded.kernels[static_cast<std::size_t>(operation.kernel)]);
    } else if (operation.kind == Kind::write && !is_copied(recorded, operation)) {
      compile(writes_[rank], write_counted_word().finish());
    } else if (operation.kind == Kind::wait) {
      compile(waits_[{rank, operation.compare}], wait_for_counted_word(operation.compare).finish());
    }
  }
}

RunNumbers::RunNumbers(const ir::Program& bound, const ProgramRanks& ranks,
                       const CountKernels& kernels, std::int64_t runs)
    : program_(bound), kernels_(kernels) {
  std::map<int, std::vector<std::int32_t>> now, step;
  for (const ir::ProgramOperation& operation : bound.operations) {
    const int rank = rank_of(bound, operation);
    const bool counts = operation.kind == Kind::launch || operation.kind == Kind::write ||
                        operation.kind == Kind::wait;
    if (!counts || !ranks.runs(rank)) continue;
    const auto [value, more] = number_of(operation, runs);
    positions_[&operation] = now[rank].size();
    now[rank].push_back(value);
    step[rank].push_back(more);
  }
  for (const auto& [rank, values] : now) {
    const runtime::Device& device = ranks.device(rank);
    const std::size_t bytes = values.size() * sizeof(std::int32_t);
    const std::string name = fmt::format("numbers of rank {} of program {}", rank, bound.name);
    const auto made = numbers_.emplace(rank, Numbers{static_cast<std::int64_t>(values.size()),
                                                     runtime::DeviceBuffer(device, bytes, name),
                                                     runtime::DeviceBuffer(device, bytes, name)});
    const runtime::Stream stream(device);
    made.first->second.now.upload(values.data(), bytes, stream);
    made.first->second.step.upload(step[rank].data(), bytes, stream);
    stream.synchronize();
  }
}

void RunNumbers::count(int rank, const runtime::Stream& stream) const {
  const auto found = numbers_.find(rank);
  if (found == numbers_.end()) return;
  const Numbers& numbers = found->second;
  Arguments arguments;
  arguments.tensors = {vector_of("now", numbers.count, numbers.now.data()),
                       vector_of("step", numbers.count, numbers.step.data())};
  kernels_.count(rank).launch(stream, arguments);
}

std::byte* RunNumbers::word_of(const ir::ProgramOperation& operation) const {
  const int rank = rank_of(program_, operation);
  return static_cast<std::byte*>(numbers_.at(rank).now.data()) +
         positions_.at(&operation) * sizeof(std::int32_t);
}

const std::int32_t* RunNumbers::epoch(const ir::ProgramOperation& launch) const {
  return reinterpret_cast<const std::int32_t*>(word_of(launch));
}

void RunNumbers::queue(const ir::ProgramOperation& operation, std::byte* word,
                       const runtime::Stream& stream) const {
  if (is_copied(program_, operation)) {
    return runtime::copy_async(word, word_of(operation), sizeof(std::int32_t), stream);
  }
  const int rank = rank_of(program_, operation);
  Arguments arguments;
  arguments.tensors = {vector_of("word", 1, word), vector_of("value", 1, word_of(operation))};
  const bool writes = operation.kind == Kind::write;
  const compiler::CompiledKernel& kernel =
      writes ? kernels_.write(rank) : kernels_.wait(rank, operation.compare);
  kernel.launch(stream, arguments);
}

}  // namespace tilewright
