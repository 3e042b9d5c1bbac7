#include "api/program_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/peers.h"
#include "support/diagnostic.h"

namespace tilewright {

using Kind = ir::ProgramOperation::Kind;

namespace {

bool scalars_change(const ir::ProgramOperation& launch) {
  return std::any_of(launch.scalars.begin(), launch.scalars.end(),
                     [](const RunNumber& scalar) { return scalar.per_run != 0; });
}

int epoch_of(const ir::ProgramOperation& launch, std::int64_t run) {
  return static_cast<int>(launch.epoch + (run - 1) * launch.epochs_per_run);
}

}  // namespace

ProgramSteps::ProgramSteps(const ir::Program& bound, const ProgramRanks& ranks,
                           const Kernels& kernels, const WordWaits& waits, const Events& events,
                           const ir::BufferAddress& address, ProgramWatch* watch,
                           const RunNumbers* numbers)
    : program_(bound),
      waits_(waits),
      nodes_(ranks.nodes()),
      watch_(watch),
      numbers_(numbers),
      address_(address) {
  for (const ir::ProgramOperation& operation : bound.operations) {
    const int rank = bound.streams[static_cast<std::size_t>(operation.stream)].rank;
    if (ranks.runs(rank)) steps_.push_back(prepared(operation, rank, kernels, events));
  }
  if (!watch_) join_words();
  if (numbers_) run_words_first(ranks);
}

// Kernels at words of other streams come before one that waits for words, beside which they might
// find no multiprocessor.
void ProgramSteps::run_words_first(const ProgramRanks& ranks) {
  std::map<int, std::size_t> last;  // of each stream, its last kernel at words
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    Step& step = steps_[i];
    const ir::ProgramOperation& operation = *step.operation;
    if (is_word_kernel(program_, operation)) last[operation.stream] = i;
    if (!waits_for_streams(program_, operation)) continue;
    for (const auto& [stream, number] : last) {
      Step& words = steps_[number];
      if (words.rank != step.rank || stream == operation.stream) continue;
      if (!words.ran) words.ran.emplace(ranks.device(step.rank), runtime::Event::Timing::off);
      step.behind.push_back(&*words.ran);
    }
  }
}

// What one of the program's streams does at words, one after the other, it does in one step.
void ProgramSteps::join_words() {
  std::map<int, std::size_t> last;  // of each stream, its last step
  std::vector<Step> joined;
  for (Step& step : steps_) {
    if (step.is_replaced && step.transfer.parts.empty()) continue;
    const auto before = last.find(step.operation->stream);
    if (before != last.end() && is_by_driver(step) && is_by_driver(joined[before->second]) &&
        joined[before->second].transfer.parts.empty()) {
      Step& into = joined[before->second];
      into.words.insert(into.words.end(), step.words.begin(), step.words.end());
      into.about += ", " + step.about;
      into.transfer = std::move(step.transfer);
      continue;
    }
    last[step.operation->stream] = joined.size();
    joined.push_back(std::move(step));
  }
  steps_ = std::move(joined);
}

bool ProgramSteps::is_by_driver(const Step& step) {
  if (step.words.empty()) return false;
  const ir::ProgramOperation& operation = *step.words.back().operation;
  return operation.kind == Kind::write ||
         WordWaits::by_driver(nullptr, operation.compare, 0).has_value();
}

ProgramSteps::Step ProgramSteps::prepared(const ir::ProgramOperation& operation, int rank,
                                          const Kernels& kernels, const Events& events) const {
  Step step;
  step.operation = &operation;
  step.rank = rank;
  if (nodes_) step.transfer = nodes_->behind(program_, operation, address_);
  step.is_replaced = nodes_ && nodes_->replaces(program_, operation);
  if (step.is_replaced) return step;
  const auto rows = [&](const ir::ProgramPart& to, const ir::ProgramPart& from) {
    ir::for_each_rows(argument_of(program_, to, address_), argument_of(program_, from, address_),
                      [&](const ir::CopiedRows& each) { step.rows.push_back(each); });
  };
  switch (operation.kind) {
    case Kind::launch: {
      step.kernel = numbers_ ? &numbers_->kernels().launched(rank, operation.kernel)
                             : kernels.at(rank)[static_cast<std::size_t>(operation.kernel)].get();
      compiler::CompiledKernel::Ready ready =
          step.kernel->ready(arguments_of(program_, operation, 1, address_));
      if (!scalars_change(operation)) step.launch = std::move(ready);
      if (watch_) {
        step.kernel->describe_waits(rank, [watch = watch_, &operation](const std::string& words) {
          return watch->writers_of(operation, words);
        });
      }
      break;
    }
    case Kind::copy:
      rows(operation.to, operation.from);
      break;
    case Kind::zero:
      rows(operation.to, operation.to);
      break;
    case Kind::write:
    case Kind::wait:
      step.words.push_back({&operation, argument_of(program_, operation.to, address_).data});
      step.about =
          fmt::format("{} for {}[{}] at {}", name_of(operation.kind),
                      name_of(program_, operation.to.buffer, operation.to.rank),
                      ir::constant(operation.to.starts.front()), format_location(operation.where));
      break;
    case Kind::record:
    case Kind::wait_event:
      step.event = &events.at(operation.event);
      break;
  }
  return step;
}

void ProgramSteps::queue(std::int64_t run, const std::vector<const runtime::Stream*>& streams) {
  for (Step& step : steps_) {
    const runtime::Stream& stream = *streams[static_cast<std::size_t>(step.operation->stream)];
    queue(step, stream, run);
    if (watch_) watch_->note(*step.operation, stream);
  }
}

void ProgramSteps::queue(Step& step, const runtime::Stream& stream, std::int64_t run) const {
  for (const runtime::Event* each : step.behind) stream.wait(*each);
  if (!step.is_replaced) queue_own(step, stream, run);
  if (step.ran) step.ran->record(stream);
  if (!step.transfer.parts.empty()) nodes_->queue(step.transfer, stream, run);
}

void ProgramSteps::queue_own(Step& step, const runtime::Stream& stream, std::int64_t run) const {
  const ir::ProgramOperation& operation = *step.operation;
  switch (operation.kind) {
    case Kind::launch:
      if (numbers_) {
        return step.kernel->launch(stream, *step.launch, numbers_->epoch(operation));
      }
      if (step.launch) return step.kernel->launch(stream, *step.launch, epoch_of(operation, run));
      return step.kernel->launch(stream, arguments_of(program_, operation, run, address_));
    case Kind::copy:
      for (const ir::CopiedRows& each : step.rows) {
        runtime::copy_rows_async(each.to, each.to_pitch, each.from, each.from_pitch, each.bytes,
                                 each.rows, stream);
      }
      return;
    case Kind::zero:
      for (const ir::CopiedRows& each : step.rows) {
        runtime::zero_rows_async(each.to, each.to_pitch, each.bytes, each.rows, stream);
      }
      return;
    case Kind::write:
    case Kind::wait:
      return queue_words(step, stream, run);
    case Kind::record:
      return step.event->record(stream);
    case Kind::wait_event:
      return stream.wait(*step.event);
  }
}

void ProgramSteps::queue_words(const Step& step, const runtime::Stream& stream,
                               std::int64_t run) const {
  thread_local std::vector<runtime::WordOperation> operations;
  operations.clear();
  for (const Word& word : step.words) {
    const ir::ProgramOperation& operation = *word.operation;
    if (numbers_) {
      numbers_->queue(operation, word.at, stream);
      continue;
    }
    const std::int32_t value = ir::word_value(operation.value, run);
    if (operation.kind == Kind::write) {
      operations.push_back({runtime::WordOperation::Kind::write, word.at, value});
    } else if (const auto wait = WordWaits::by_driver(word.at, operation.compare, value)) {
      operations.push_back(*wait);
    } else {
      return waits_.queue_kernel(step.rank, stream, word.at, operation.compare, value);
    }
  }
  runtime::queue_words(stream, operations, step.about);
}

}  // namespace tilewright
