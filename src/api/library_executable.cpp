#include "tilewright/library_executable.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>

#include "api/shared_tensors.h"
#include "check/gradients.h"
#include "compiler/target.h"
#include "library/length_sources.h"
#include "library/library_build.h"
#include "library/schedule_choice.h"
#include "library/stated_schedule.h"
#include "runtime/device.h"
#include "support/diagnostic.h"
#include "support/held.h"

namespace tilewright {
namespace {

// A kernel or a program.
struct BuiltOperation {
  std::variant<Executable, ProgramExecutable> made;
  void run(const std::vector<TensorRef>& tensors, void* stream) const {
    std::visit([&](const auto& each) { each.run(tensors, {}, stream); }, made);
  }
  void prepare(const std::vector<TensorRef>& tensors, void* stream) const {
    std::visit([&](const auto& each) { each.prepare(tensors, {}, stream); }, made);
  }
};

void check_over_ranks(const LibraryKernel& kernel) {
  if (kernel.over_ranks) return;
  Diagnostic({}, kernel.name + " runs on one GPU").fix("run it on its tensors alone").raise();
}

struct BuiltVariant {
  explicit BuiltVariant(ScheduleChoice what) : choice(std::move(what)) {}
  ScheduleChoice choice;
  std::mutex mutex;  // of the build
  std::unique_ptr<BuiltOperation> operation;
  std::atomic<BuiltOperation*> ready{nullptr};
};

// A choice that this thread has made: most launches have the sizes of an earlier one.
struct Remembered {
  std::uint64_t executable = 0;
  std::vector<std::int64_t> values;
  std::size_t variant = 0;
};
constexpr std::size_t kRemembered = 64;

std::uint64_t next_executable() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

std::size_t place_of(const std::vector<std::int64_t>& values) {
  std::uint64_t hash = 0;
  for (const std::int64_t value : values) {
    hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
  }
  return hash % kRemembered;
}

int multiprocessors_of(const compiler::Target& target, const CompileOptions& how) {
  if (target.kind != compiler::Target::Kind::cuda) return how.multiprocessors;
  return runtime::Device::get(how.device).info().multiprocessors;
}

}  // namespace

struct LibraryExecutable::State {
  State(const LibraryKernel& entry, const OptionValues& options, std::string_view name,
        const CompileOptions& compile_options, std::optional<Group> of_ranks = {})
      : kernel(entry),
        how(compile_options),
        group(std::move(of_ranks)),
        target(compiler::parse_target(name, how.device)),
        rules(library::open_rules(kernel, options, target.scheduled_for(), how.rules_folder)),
        values(rules.values_of(options, multiprocessors_of(target, how))) {
    library::check_fields(options, target);
    const std::vector<bool> reachable = rules.reachable(options);
    for (std::size_t i = 0; i < reachable.size(); ++i) {
      variant_of_rule.push_back(reachable[i] ? add_variant(options, rules.rules()[i]) : 0);
    }
    sources = library::length_sources(kernel, tensors_of(kernel, options));
    std::vector<std::int64_t> own = values;
    standard = variant_of_rule[rules.match(own.data())];
  }

  // Rules that choose the same share a variant.
  std::size_t add_variant(const OptionValues& options, const library::Rule& rule) {
    ScheduleChoice choice = library::choice_of(kernel, options, rule);
    const auto [found, is_new] = number_of_name.emplace(library::name_of(choice), variants.size());
    if (is_new) variants.push_back(std::make_unique<BuiltVariant>(std::move(choice)));
    return found->second;
  }

  // A launch whose tensors have not the right axes is refused by whichever variant it reaches.
  std::size_t choose(const std::vector<TensorRef>& tensors) const {
    if (variants.size() == 1) return 0;
    thread_local std::vector<std::int64_t> bound;
    bound.assign(values.begin(), values.end());
    for (const library::LengthSource& source : sources) {
      if (source.tensor >= tensors.size()) return standard;
      const std::vector<std::int64_t>& shape = tensors[source.tensor].shape;
      if (source.axis >= shape.size()) return standard;
      bound[source.value] = shape[source.axis] - source.excess;
    }
    thread_local std::array<Remembered, kRemembered> memory;
    Remembered& remembered = memory[place_of(bound)];
    if (remembered.executable != number || remembered.values != bound) {
      remembered = {number, bound, 0};
      remembered.variant = variant_of_rule[rules.match(bound.data())];
    }
    return remembered.variant;
  }

  // The run that needs it is queued on the stream.
  BuiltOperation& built(std::size_t number, void* stream) {
    BuiltVariant& variant = *variants[number];
    BuiltOperation* const ready = variant.ready.load(std::memory_order_acquire);
    if (ready == nullptr && target.kind == compiler::Target::Kind::cuda) {
      runtime::Stream::borrow(runtime::Device::get(how.device), static_cast<CUstream_st*>(stream))
          .require_no_capture({}, kernel.name + ": the variant " +
                                      library::name_of(variant.choice) + " is not built yet");
    }
    return ready == nullptr ? built(number) : *ready;
  }

  // Another assembler than ours may need a stack frame, which is nothing that a caller could mend.
  BuiltOperation build(const ScheduleChoice& chosen) const {
    const ScheduleChoice choice = library::fitting(kernel, chosen, target);
    CompileOptions launched = how;
    if (target.kind == compiler::Target::Kind::cuda) launched.allow_stack_frame = true;
    if (!kernel.is_program()) return {compile(build_choice(kernel, choice), target.name, launched)};
    const Program program = build_program(kernel, choice);
    if (group) return {compile(program, target.name, *group, launched)};
    return {compile(program, target.name, launched)};
  }

  BuiltOperation& built(std::size_t number) {
    BuiltVariant& variant = *variants[number];
    const std::lock_guard lock(variant.mutex);
    if (variant.operation == nullptr) {
      std::optional<runtime::BesideCaptures> beside;
      if (target.kind == compiler::Target::Kind::cuda) {
        beside.emplace(runtime::Device::get(how.device));
      }
      variant.operation = std::make_unique<BuiltOperation>(build(variant.choice));
      variant.ready.store(variant.operation.get(), std::memory_order_release);
    }
    return *variant.operation;
  }

  const std::uint64_t number = next_executable();  // never another's, as an address may be
  const LibraryKernel& kernel;
  const CompileOptions how;
  const std::optional<Group> group;
  const compiler::Target target;
  const library::CompiledRules rules;
  const std::vector<std::int64_t> values;  // of the options that the kernel was compiled with
  std::vector<std::unique_ptr<BuiltVariant>> variants;
  std::map<std::string, std::size_t> number_of_name;
  std::vector<std::size_t> variant_of_rule;
  std::vector<library::LengthSource> sources;
  std::size_t standard = 0;  // the variant for `values`
};

LibraryExecutable::LibraryExecutable(std::unique_ptr<State> state) : state_(std::move(state)) {}
LibraryExecutable::~LibraryExecutable() = default;
LibraryExecutable::LibraryExecutable(LibraryExecutable&&) noexcept = default;
LibraryExecutable& LibraryExecutable::operator=(LibraryExecutable&&) noexcept = default;

void LibraryExecutable::run(const std::vector<TensorRef>& tensors, void* stream) const {
  State& state = held(state_, "LibraryExecutable");
  state.built(state.choose(tensors), stream).run(tensors, stream);
}

void LibraryExecutable::run_on_gpus(const std::vector<TensorRef>& tensors,
                                    const std::vector<void*>& streams) const {
  State& state = held(state_, "LibraryExecutable");
  check_over_ranks(state.kernel);
  std::get<ProgramExecutable>(state.built(state.choose(tensors)).made)
      .run_on_gpus(tensors, streams);
}

void LibraryExecutable::run_in_group(const std::vector<TensorRef>& tensors, void* stream) const {
  State& state = held(state_, "LibraryExecutable");
  check_over_ranks(state.kernel);
  std::get<ProgramExecutable>(state.built(state.choose(tensors), stream).made)
      .run_in_group(tensors, stream);
}

void LibraryExecutable::synchronize() const {
  State& state = held(state_, "LibraryExecutable");
  check_over_ranks(state.kernel);
  for (const std::unique_ptr<BuiltVariant>& variant : state.variants) {
    BuiltOperation* const built = variant->ready.load(std::memory_order_acquire);
    if (built != nullptr) std::get<ProgramExecutable>(built->made).synchronize();
  }
}

void LibraryExecutable::run_in_float64(const std::vector<TensorRef>& tensors) const {
  State& state = held(state_, "LibraryExecutable");
  if (state.target.kind != compiler::Target::Kind::interpreter) {
    Diagnostic({}, fmt::format("{} is asked for in float64, and is compiled for {}",
                               state.kernel.name, state.target.name))
        .fix("create it for the target interpreter")
        .raise();
  }
  const ScheduleChoice& choice = state.variants[state.choose(tensors)]->choice;
  const auto run = [&](const auto& operation) {
    const checks::GradientPass pass(operation);
    pass.check_tile_level();
    Arguments arguments;
    for (const ir::Parameter& parameter : pass.signature().parameters) {
      if (!parameter.is_tensor() || arguments.tensors.size() == tensors.size()) continue;
      const TensorRef& given = tensors[arguments.tensors.size()];
      arguments.tensors.push_back(
          {parameter.name,
           given.dtype,
           given.shape,
           given.strides.empty() ? row_major_strides(given.shape) : given.strides,
           static_cast<std::byte*>(given.data),
           {},
           /*is_double=*/true});
    }
    pass.run_in_float64(arguments, {}, nullptr);
  };
  if (state.kernel.is_program()) return run(build_program(state.kernel, choice).finish());
  run(build_choice(state.kernel, choice).finish());
}

std::vector<bool> LibraryExecutable::reached_by_others(
    const std::vector<TensorRef>& tensors) const {
  State& state = held(state_, "LibraryExecutable");
  check_over_ranks(state.kernel);
  const ir::Program program =
      build_program(state.kernel, state.variants[state.choose(tensors)]->choice).finish();
  std::vector<bool> reached(program.buffers.size(), false);
  for (const ReachedBuffer& each : tilewright::reached_by_others(program)) {
    reached[static_cast<std::size_t>(each.buffer)] = true;
  }
  std::vector<bool> of_passed;
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    if (program.buffers[i].is_passed()) of_passed.push_back(reached[i]);
  }
  return of_passed;
}

void LibraryExecutable::prepare(const std::vector<TensorRef>& tensors, void* stream) const {
  State& state = held(state_, "LibraryExecutable");
  state.built(state.choose(tensors), stream).prepare(tensors, stream);
}

std::vector<LibraryExecutable::Variant> LibraryExecutable::variants() const {
  std::vector<Variant> variants;
  for (const std::unique_ptr<BuiltVariant>& variant : held(state_, "LibraryExecutable").variants) {
    variants.push_back({library::name_of(variant->choice), variant->ready.load() != nullptr});
  }
  return variants;
}

void LibraryExecutable::prepare() const {
  State& state = held(state_, "LibraryExecutable");
  for (std::size_t i = 0; i < state.variants.size(); ++i) state.built(i);
}

LibraryExecutable compile(const LibraryKernel& kernel, const OptionValues& options,
                          std::string_view target, const CompileOptions& how) {
  auto state = std::make_unique<LibraryExecutable::State>(kernel, options, target, how);
  state->built(state->standard);
  return LibraryExecutable(std::move(state));
}

LibraryExecutable compile(const LibraryKernel& kernel, const OptionValues& options,
                          std::string_view target, const Group& group, const CompileOptions& how) {
  check_over_ranks(kernel);
  auto state = std::make_unique<LibraryExecutable::State>(kernel, options, target, how, group);
  state->built(state->standard);
  return LibraryExecutable(std::move(state));
}

}  // namespace tilewright
