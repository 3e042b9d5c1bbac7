#include "check/printed_faults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <regex>

#include "check/fuzz/recipe.h"
#include "check/printed.h"
#include "check/shrunken_sizes.h"
#include "codegen/print.h"
#include "compiler/compile_to_machine.h"
#include "compiler/target.h"
#include "library/library_build.h"
#include "library/workload.h"
#include "support/diagnostic.h"
#include "support/random.h"
#include "tilewright/kernel.h"

namespace tilewright::checks {
namespace {

// The text with the fault; the same where it has no place. The prelude ends where the functions
// made for the kernel begin, or the kernel.
std::string seeded(const PrintedFault& fault, const std::string& text) {
  static const std::regex wrapper(
      "\n__device__ __forceinline__ void (tma_|wgmma_\\w+_m64|named_\\w+_to_)");
  std::smatch match;
  std::size_t end = std::min(text.find("\nextern \"C\""), text.size());
  if (std::regex_search(text, match, wrapper)) {
    end = std::min(end, static_cast<std::size_t>(match.position()));
  }
  const std::string prelude = text.substr(0, end), body = text.substr(end);
  const std::regex pattern{std::string(fault.pattern)};
  const std::string replacement(fault.replacement);
  return fault.in_prelude ? std::regex_replace(prelude, pattern, replacement) + body
                          : prelude + std::regex_replace(body, pattern, replacement);
}

int first_difference(const std::string& a, const std::string& b) {
  const auto at = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
  return 1 + static_cast<int>(std::count(a.begin(), at, '\n'));
}

constexpr const char* kRefused = "does not compile";

// What shows the fault; nothing where all is as without it.
std::string shown(const PrintedSubject& subject, const codegen::CudaSource& source) {
  try {
    const ptx::Module module = printed_ptx(subject.machine, source);
    PrintedOptions options;
    options.multiprocessors = subject.multiprocessors;
    const PrintedDifference difference =
        compare_printed(subject.machine, source.parameters, module, subject.arguments(), options);
    if (difference.none()) return {};
    return fmt::format("{}: {}", difference.kind, difference.message);
  } catch (const Error& error) {
    // PTX that is no PTX shows at once; what the compiler refuses could not ship at all.
    const SourceLocation where = error.location();
    if (where.file && std::string_view(where.file).ends_with(".ptx")) return error.message();
    if (error.kind() == ErrorKind::internal) return kRefused;
    throw;
  }
}

struct OwnTensor {
  const char* name;
  DType dtype;
  std::vector<std::int64_t> shape;
};

// A kernel of this file on random tensors.
PrintedSubject own_subject(const Kernel& kernel, const std::vector<OwnTensor>& tensors) {
  const auto memory = std::make_shared<std::vector<HostTensor>>();
  Random random(1);
  for (const OwnTensor& tensor : tensors) {
    HostTensor& made = memory->emplace_back(HostTensor::zeros(tensor.dtype, tensor.shape));
    const int lowest = tensor.dtype == u8 ? 0 : -50;
    for (std::int64_t i = 0; i < made.elements(); ++i) {
      made.set_flat(i,
                    is_float(tensor.dtype) ? 4 * random.uniform() - 2 : lowest + random.below(100));
    }
  }
  PrintedSubject subject;
  subject.machine = compiler::machine_forms(kernel.finish(), ir::default_target()).back().kernel;
  subject.name = subject.machine.name;
  subject.arguments = [memory, tensors] {
    Arguments arguments;
    for (HostTensor& tensor : *memory) {
      arguments.tensors.push_back({tensors[arguments.tensors.size()].name,
                                   tensor.dtype(),
                                   tensor.shape(),
                                   tensor.strides(),
                                   tensor.data(),
                                   {}});
    }
    return arguments;
  };
  return subject;
}

constexpr std::int64_t kRows = 136;  // the last block has a few

// Conversions, functions and quotients that the library's kernels do not have.
PrintedSubject conversions() {
  Kernel kernel("conversions");
  const Dim rows = kernel.dim("rows"), columns = 64;
  const auto in = [&](const char* name, DType dtype) {
    return kernel.in(name, dtype, {rows, columns});
  };
  const auto out = [&](const char* name, DType dtype) {
    return kernel.out(name, dtype, {rows, columns});
  };
  const Tensor A = in("A", i8), B = in("B", u8), X = in("X", f32), K = in("K", i32);
  const Tensor Y = out("Y", f32), H = out("H", bf16), E = out("E", f8e4m3), S = out("S", i8),
               Q = out("Q", i32);
  const auto [at] = kernel.grid(ceil_div(rows, 64));
  const Block own = rows.block(at, 64), all = columns.block(0, 64);
  const Tile a = load(A(own, all)), b = load(B(own, all)), x = load(X(own, all)),
             k = load(K(own, all));
  store(H(own, all), a.cast(bf16) + b.cast(bf16) * 2.0);
  store(Y(own, all), log(abs(x) + 0.5) + exp(x) + a.cast(f16).cast(f32) + b.cast(f16).cast(f32));
  store(E(own, all), x.cast(f8e4m3));
  store(S(own, all), (x * 50.0).cast(i8));
  store(Q(own, all), k / 7 + k % 5);
  const std::vector<std::int64_t> shape = {kRows, 64};
  return own_subject(kernel, {{"A", i8, shape},
                              {"B", u8, shape},
                              {"X", f32, shape},
                              {"K", i32, shape},
                              {"Y", f32, shape},
                              {"H", bf16, shape},
                              {"E", f8e4m3, shape},
                              {"S", i8, shape},
                              {"Q", i32, shape}});
}

// Two warpgroups that compute what their products read issue these in turn.
PrintedSubject products_in_turn() {
  Kernel kernel("products_in_turn");
  const Dim m = kernel.dim("m"), k = kernel.dim("k");
  const Tensor X = kernel.in("X", bf16, {m, k}), W = kernel.in("W", bf16, {64, k});
  const Tensor Y = kernel.out("Y", bf16, {m, 64});
  const auto [at] = kernel.grid(ceil_div(m, 128));
  const Block rows = m.block(at, 128);
  Var sum{zeros({rows, 64})};
  for (Block depth : blocks(k, 64)) {
    const Tile a = (load(X(rows, depth)).cast(f32) * 2).cast(bf16);
    sum = dot(a, load(W(all, depth)).T(), sum);
  }
  store(Y(rows, all), sum);
  return own_subject(kernel,
                     {{"X", bf16, {kRows, 320}}, {"W", bf16, {64, 320}}, {"Y", bf16, {kRows, 64}}});
}

}  // namespace

const std::vector<PrintedFault>& printed_faults() {
  static const std::vector<PrintedFault> faults = {
#define TW_PRINTED_FAULT(name, pattern, replacement) {name, false, pattern, replacement},
#define TW_PRELUDE_FAULT(name, pattern, replacement) {name, true, pattern, replacement},
#include "check/printed_faults.def"
#undef TW_PRINTED_FAULT
#undef TW_PRELUDE_FAULT
  };
  return faults;
}

std::vector<PrintedFaultResult> prove_printer(const std::vector<PrintedSubject>& subjects,
                                              std::int64_t patience,
                                              const std::vector<const PrintedFault*>& faults,
                                              const std::function<void()>& advance) {
  std::vector<codegen::CudaSource> sources;
  std::vector<bool> agrees(subjects.size());
  for (const PrintedSubject& subject : subjects) sources.push_back(codegen::print(subject.machine));
  const auto check = [&](std::size_t i) {
    if (agrees[i]) return;
    const std::string how = shown(subjects[i], sources[i]);
    if (!how.empty()) {
      Diagnostic(subjects[i].machine.where,
                 fmt::format("{} differs without any fault: {}", subjects[i].name, how),
                 ErrorKind::result)
          .raise();
    }
    agrees[i] = true;
  };
  std::vector<PrintedFaultResult> results;
  for (const PrintedFault* fault : faults) {
    PrintedFaultResult& result = results.emplace_back();
    result.fault = fault;
    result.how = "no subject has a place for it";
    for (std::size_t i = 0; i < subjects.size() && result.subjects < patience; ++i) {
      codegen::CudaSource source = sources[i];
      source.text = seeded(*fault, source.text);
      if (source.text == sources[i].text) continue;
      check(i);
      ++result.subjects;
      result.subject = subjects[i].name;
      result.line = first_difference(sources[i].text, source.text);
      result.how = shown(subjects[i], source);
      result.caught = !result.how.empty() && result.how != kRefused;
      if (result.caught) break;
    }
    if (advance) advance();
  }
  return results;
}

std::string difference_of(const PrintedSubject& subject) {
  return shown(subject, codegen::print(subject.machine));
}

std::vector<PrintedSubject> random_subjects(std::uint64_t seed) {
  std::vector<PrintedSubject> subjects;
  const fuzz::Recipe recipe = fuzz::random_recipe(seed);
  try {
    const auto traced = std::make_shared<fuzz::Traced>(fuzz::trace(recipe));
    const ir::Kernel kernel = recipe.style == fuzz::Recipe::Style::explicit_level
                                  ? fuzz::trace_explicit(recipe, ir::default_target()).finish()
                                  : traced->kernel.finish();
    for (compiler::MachineForm& form : compiler::machine_forms(kernel, ir::default_target())) {
      PrintedSubject& subject = subjects.emplace_back();
      subject.name = fmt::format("random kernel {}", seed);
      subject.machine = std::move(form.kernel);
      subject.multiprocessors = shrunken_multiprocessors(subject.machine);
      // Each launch begins with the tensors that were made for it.
      subject.arguments = [traced, before = traced->launch] {
        traced->launch = before;
        return traced->launch.arguments();
      };
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage) throw;  // a recipe that the compiler refuses
  }
  return subjects;
}

std::vector<PrintedSubject> printed_subjects(
    std::int64_t random, const std::function<const LibraryKernel&(std::string_view)>& find) {
  std::vector<PrintedSubject> subjects;
  const auto library = [&](const char* name, std::vector<std::string> settings) {
    const LibraryKernel& entry = find(name);
    const compiler::Target target = compiler::parse_target(ir::default_target());
    const auto built = [&] {
      const OptionValues options = resolve_options(entry, settings);
      const ir::Kernel traced = library::trace_entry(entry, options, target).finish();
      return compiler::machine_forms(traced, ir::default_target()).back().kernel;
    };
    PrintedSubject subject;
    subject.name = fmt::format("{} {}", name, fmt::join(settings, " "));
    const auto sizes =
        shrunken_sizes(entry, settings, resolve_options(entry, settings), built(), Sizes::usual);
    settings.insert(settings.end(), sizes.front().begin(), sizes.front().end());
    subject.machine = built();
    const auto workload =
        std::make_shared<library::Workload>(library::make_workload(entry, settings, {}, 1));
    subject.multiprocessors = shrunken_multiprocessors(subject.machine);
    subject.arguments = [workload] {
      workload->poison_outputs();
      return workload->arguments();
    };
    subjects.push_back(std::move(subject));
  };
  library("gemm", {"schedule=128x88"});
  library("gemm", {"schedule=128x96_a2_b4"});
  library("gemm", {"schedule=64x128_b2_split4"});
  library("gemm", {"schedule=tile"});
  library("attention_forward", {"schedule=sm90", "causal=true", "window=150"});
  library("attention_forward", {"schedule=tile"});
  library("attention_forward", {"schedule=sm90", "dim=128"});
  library("gemm", {"schedule=16x64x256_t"});
  library("gemm_fp8", {"schedule=128x128"});
  subjects.push_back(conversions());
  subjects.push_back(products_in_turn());
  for (std::int64_t seed = 1; seed <= random; ++seed) {
    std::vector<PrintedSubject> forms = random_subjects(static_cast<std::uint64_t>(seed));
    if (!forms.empty()) subjects.push_back(std::move(forms.back()));
  }
  return subjects;
}

}  // namespace tilewright::checks
