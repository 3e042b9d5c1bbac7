// What `tilewright build` writes, compiled and run on a driver without a GPU: it launches what the
// runtime would.

#include "ahead/c_files.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "ahead/exported_library.h"
#include "common/programs.h"
#include "compiler/compiled.h"
#include "compiler/launch_plan.h"
#include "library/schedule_choice.h"
#include "runtime/fake_driver.h"
#include "tilewright/plugin.h"

namespace tilewright::test {
namespace {

using testing::HasSubstr;

constexpr int kMultiprocessors = 132;  // of the fake driver's GPUs
constexpr std::int64_t kUnit = 256;

// The first machine form, with text for a cubin: no compiler of NVIDIA's is here.
compiler::BuiltKernel printed(const ir::Kernel& kernel, const std::string& arch) {
  compiler::BuiltKernel built{compiler::translate(kernel, arch), {}};
  built.build.kernel.cubin = "no cubin of " + kernel.name;
  return built;
}

ahead::Exported exported(const library::KernelSource& source,
                         const std::vector<std::string>& settings = {},
                         const std::vector<std::vector<std::string>>& kept = {},
                         const std::string& arch = "sm_90a") {
  std::vector<OptionValues> sizes;
  for (const auto& each : kept) sizes.push_back(resolve_options(source.entry(), each));
  return ahead::export_operation(source, resolve_options(source.entry(), settings), arch, sizes,
                                 printed, [](std::size_t, std::size_t) {});
}

// A tensor somewhere: nothing is read or written.
struct Given {
  DType dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides = {};
  std::uintptr_t address = 0;
};

// One launch: what it is and what it passes.
struct Launched {
  std::string name;
  std::vector<unsigned> shape;  // grid, block, cluster, shared bytes, cooperative
  std::vector<std::string> parameters;
  friend bool operator==(const Launched&, const Launched&) = default;
};

FakeCudaState* fake = nullptr;
std::vector<Launched> launched;
const std::vector<std::vector<std::size_t>>* sizes_of_launches = nullptr;

int record(void** arguments) {
  Launched launch{fake->launched,
                  {fake->grid[0], fake->block[0], fake->cluster[0], fake->shared_bytes,
                   static_cast<unsigned>(fake->cooperative)},
                  {}};
  const std::vector<std::size_t>& sizes = sizes_of_launches->at(launched.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    launch.parameters.emplace_back(static_cast<const char*>(arguments[i]), sizes[i]);
  }
  launched.push_back(std::move(launch));
  return 0;
}

class CFiles : public runtime::FakeDriverTest {
 protected:
  CFiles() {
    fake = state_;
    launched.clear();
    runtime::Device::get(0).make_current();
  }

  static std::vector<tilewright_tensor> passed(const std::vector<Given>& tensors) {
    std::vector<tilewright_tensor> given;
    for (const Given& each : tensors) {
      given.push_back({reinterpret_cast<void*>(each.address), name_of(each.dtype).data(),
                       static_cast<int32_t>(each.shape.size()), each.shape.data(),
                       each.strides.empty() ? nullptr : each.strides.data()});
    }
    return given;
  }

  static void place(std::vector<Given>& tensors) {
    std::uintptr_t next = 1 << 20;
    for (Given& each : tensors) {
      each.address = next;
      next += std::uintptr_t{1} << 32;
    }
  }

  // What the runtime would launch, with the workspace there.
  std::vector<Launched> expected(const ahead::Variant& variant, const std::vector<Given>& tensors,
                                 const std::vector<float>& scalars, std::uintptr_t workspace) {
    std::vector<ir::TensorShape> shapes;
    for (const Given& each : tensors) {
      shapes.push_back({"", each.dtype, each.shape,
                        each.strides.empty() ? row_major_strides(each.shape) : each.strides});
    }
    ir::Program program = ir::bind_program(variant.program, shapes, kMultiprocessors,
                                           {scalars.begin(), scalars.end()});
    const std::vector<std::uintptr_t> places = placed(variant.program, program, tensors, workspace);
    const auto address = [&](int buffer, int) {
      return reinterpret_cast<std::byte*>(places[static_cast<std::size_t>(buffer)]);
    };
    std::vector<Launched> wanted;
    sizes_.clear();
    for (const ir::ProgramOperation& operation : program.operations) {
      if (operation.kind != ir::ProgramOperation::Kind::launch) continue;
      const compiler::GpuProgram& built = variant.kernels[operation.kernel].program;
      compiler::LaunchPlan plan =
          compiler::plan_launch(built.machine, built.source.parameters,
                                arguments_of(program, operation, 1, address), kMultiprocessors);
      if (plan.empty) continue;
      for (const compiler::LaunchPlan::Map& map : plan.maps) {
        plan.parameters.set(map.offset, runtime::encode(map.spec));
      }
      wanted.push_back(launched_by(plan, built));
    }
    return wanted;
  }

  // Where each buffer lies: in the workspace what begins as zeros comes first.
  static std::vector<std::uintptr_t> placed(const ir::Program& recorded, const ir::Program& program,
                                            const std::vector<Given>& tensors,
                                            std::uintptr_t workspace) {
    std::vector<std::uintptr_t> places(program.buffers.size());
    std::size_t next = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (program.buffers[i].is_passed()) places[i] = tensors[next++].address;
    }
    for (const bool zeros : {true, false}) {
      for (std::size_t i = 0; i < places.size(); ++i) {
        const ir::ProgramBuffer& buffer = program.buffers[i];
        if (buffer.is_passed() || begins_as_zeros(recorded, i) != zeros) continue;
        places[i] = workspace;
        workspace += static_cast<std::uintptr_t>((buffer.bytes() + kUnit - 1) / kUnit * kUnit);
      }
    }
    return places;
  }

  static bool begins_as_zeros(const ir::Program& program, std::size_t buffer) {
    for (const ir::ProgramOperation& operation : program.operations) {
      if (operation.kind == ir::ProgramOperation::Kind::zero &&
          operation.to.buffer == static_cast<int>(buffer)) {
        return true;
      }
    }
    return program.buffers[buffer].kind == ir::ProgramBuffer::Kind::workspace;
  }

  Launched launched_by(compiler::LaunchPlan& plan, const compiler::GpuProgram& built) {
    Launched launch{built.source.entry,
                    {plan.shape.grid.x, plan.shape.block.x, plan.shape.cluster.x,
                     plan.shape.shared_bytes, plan.shape.cooperative ? 1u : 0u},
                    {}};
    std::vector<std::size_t>& sizes = sizes_.emplace_back();
    const std::vector<void*> pointers = plan.parameters.pointers();
    for (std::size_t i = 0; i < pointers.size(); ++i) {
      sizes.push_back(size_of_parameter(built.machine, built.source.parameters[i]));
      launch.parameters.emplace_back(static_cast<const char*>(pointers[i]), sizes.back());
    }
    return launch;
  }

  static std::size_t size_of_parameter(const ir::Kernel& machine,
                                       const codegen::LaunchParameter& parameter) {
    using Kind = codegen::LaunchParameter::Kind;
    if (parameter.kind != Kind::tensor_map) {
      return parameter.kind == Kind::pointer || parameter.kind == Kind::stride ? 8 : 4;
    }
    std::vector<bool> ragged;
    ir::for_each(machine.body, [&](const ir::Operation& each) {
      if (each.op == ir::Op::tensor_map) ragged.push_back(each.attributes.has(ir::Key::ragged));
    });
    return sizeof(runtime::TensorMap) * (ragged[static_cast<std::size_t>(parameter.index)] ? 2 : 1);
  }

  // A launch of the export is the runtime's of that variant.
  void expect_same(ExportedLibrary& library, const ahead::Variant& variant,
                   std::vector<Given> tensors, const std::vector<float>& scalars = {}) {
    place(tensors);
    // The driver sets parts of it to zero. What is behind it is not touched.
    const std::int64_t bytes = library.workspace(ExportedArguments(passed(tensors), scalars));
    ASSERT_GE(bytes, 0);
    std::vector<char> memory(static_cast<std::size_t>(bytes) + 2 * kUnit, 'x');
    const std::uintptr_t workspace =
        (reinterpret_cast<std::uintptr_t>(memory.data()) + kUnit - 1) / kUnit * kUnit;
    const ExportedArguments arguments(passed(tensors), scalars, reinterpret_cast<void*>(workspace));
    EXPECT_EQ(library.check(arguments), 0) << library.message();
    const std::vector<Launched> wanted = expected(variant, tensors, scalars, workspace);
    launched.clear();
    sizes_of_launches = &sizes_;
    state_->executes = record;
    EXPECT_EQ(library.launch(arguments), 0);
    state_->executes = nullptr;
    ASSERT_EQ(launched.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_EQ(launched[i].name, wanted[i].name);
      EXPECT_EQ(launched[i].shape, wanted[i].shape) << wanted[i].name;
      EXPECT_EQ(launched[i].parameters, wanted[i].parameters) << wanted[i].name;
    }
    const std::ptrdiff_t behind =
        memory.data() + memory.size() - reinterpret_cast<char*>(workspace) - bytes;
    EXPECT_EQ(std::count(memory.end() - behind, memory.end(), 'x'), behind);
  }

  std::vector<std::vector<std::size_t>> sizes_;  // of the parameters of each launch
};

// Y = factor X, where rows are a multiple of 8.
library::KernelSource scaled() {
  Kernel kernel("scaled");
  const Dim rows = kernel.dim("rows", multiple_of(8)), columns = kernel.dim("columns");
  const Tensor X = kernel.in("X", f32, {rows, columns});
  const Tensor Y = kernel.out("Y", f32, {rows + 1, columns});
  const Scalar factor = kernel.scalar("factor", f32);
  const auto [x, y] = kernel.grid(ceil_div(rows, 16), ceil_div(columns, 32));
  store(Y(rows.block(x, 16), columns.block(y, 32)),
        load(X(rows.block(x, 16), columns.block(y, 32))) * factor);
  return library::KernelSource::of_text(text_of(kernel), "scaled.tw");
}

TEST_F(CFiles, AKernelOfOnesOwnInBothLanguages) {
  const ahead::Exported own = exported(scaled());
  for (const char* language : {"c", "c++"}) {
    ExportedLibrary library(own, language);
    EXPECT_EQ(library.load(), 0) << library.message();
    expect_same(library, own.variants[0], {{f32, {40, 50}}, {f32, {41, 50}}}, {1.5f});
    expect_same(library, own.variants[0], {{f32, {40, 50}, {64, 1}}, {f32, {41, 50}, {77, 1}}},
                {-2.f});
    expect_same(library, own.variants[0], {{f32, {0, 50}}, {f32, {1, 50}}}, {1.f});
  }
  EXPECT_EQ(state_->live_handles, 0);
}

TEST_F(CFiles, SaysWhatIsWrong) {
  ExportedLibrary library(exported(scaled()));
  EXPECT_EQ(library.load(-1), 2);
  EXPECT_THAT(library.message(), HasSubstr("there is no GPU -1"));
  const std::vector<Given> right = {{f32, {40, 50}, {}, 4096}, {f32, {41, 50}, {}, 1 << 20}};
  const auto expect = [&](const Given& X, const Given& Y, const char* message) {
    const std::vector<Given> given = {X, Y};
    const ExportedArguments arguments(passed(given), {1});
    EXPECT_EQ(library.check(arguments), message[0] == '\0' ? 0 : 2);
    EXPECT_THAT(library.message(), HasSubstr(message));
  };
  const Given &X = right[0], &Y = right[1];
  expect(X, Y, "");
  expect({bf16, {40, 50}, {}, 4096}, Y, "X is bf16, and the kernel takes f32");
  expect({f32, {40}, {}, 4096}, Y, "X has rank 1, and the kernel takes {rows, columns}");
  expect({f32, {44, 50}, {}, 4096}, {f32, {45, 50}, {}, 1 << 20},
         "rows is 44, and a multiple of 8 is taken");
  expect(X, {f32, {40, 50}, {}, 1 << 20}, "axis 0 of Y has 40 elements, and (rows + 1) is 41");
  expect(X, {f32, {41, 49}, {}, 1 << 20}, "axis 1 of Y has 49 elements, and columns is 50");
  expect({f32, {40, 50}, {1, 40}, 4096}, Y, "axis 1 of X has stride 40");
  expect({f32, {-8, 50}, {}, 4096}, Y, "axis 0 of X has -8 elements");
  expect({f32, {40, 50}, {}, 4098}, Y, "no multiple of its elements' 4 bytes");
  expect({f32, {40, 50}, {}, 0}, Y, "X has no memory");
  expect(X, {f32, {41, 50}, {}, 4096 + 400}, "Y is written, and shares memory with X");
  expect(X, {f32, {41, 50}, {10, 1}, 1 << 20}, "put elements of axes 0 and 1 in one place");
  const ExportedArguments arguments(passed(right), {1});
  EXPECT_EQ(library.launch(arguments), 3);  // it is not loaded
  EXPECT_EQ(library.load(), 0);
  EXPECT_EQ(library.launch(arguments), 0);
  EXPECT_EQ(library.load(64), 2);
  state_->next_result = 719;
  EXPECT_EQ(library.launch(arguments), 0x10000 + 719);
}

TEST_F(CFiles, AProgramWithItsMemory) {
  const ahead::Exported backward =
      exported(library::KernelSource(find_kernel("attention_backward")), {"causal=true"});
  ASSERT_GT(backward.variants[0].kernels.size(), 1u);
  ExportedLibrary library(backward);
  ASSERT_EQ(library.load(), 0) << library.message();
  std::vector<Given> tensors;
  for (int i = 0; i < 9; ++i) tensors.push_back({bf16, {2, 300, 8, 64}});
  tensors[4] = {f32, {2, 8, 300}};
  expect_same(library, backward.variants[0], tensors);
  tensors[0].strides = {300 * 8 * 192, 8 * 192, 192, 1};
  expect_same(library, backward.variants[0], tensors);

  place(tensors);
  EXPECT_GT(library.workspace(ExportedArguments(passed(tensors), {})), 2 * 8 * 384 * 4);
  EXPECT_EQ(library.launch(ExportedArguments(passed(tensors), {})), 2);  // without a workspace
  tensors[3].shape[1] = 299;
  EXPECT_EQ(library.workspace(ExportedArguments(passed(tensors), {})), -1);
}

TEST_F(CFiles, PackedSequencesWithAndWithoutRows) {
  const library::KernelSource source(find_kernel("attention_varlen_forward"));
  const ahead::Exported packed = exported(source, {"heads=4", "dim=64"});
  ExportedLibrary library(packed);
  ASSERT_EQ(library.load(), 0) << library.message();
  for (const std::int64_t keys : {500, 0}) {
    expect_same(library, packed.variants[0],
                {{bf16, {300, 4, 64}},
                 {bf16, {keys, 4, 64}},
                 {bf16, {keys, 4, 64}},
                 {i32, {4}},
                 {i32, {4}},
                 {bf16, {300, 4, 64}},
                 {f32, {4, 300}}});
  }
}

TEST_F(CFiles, ChoosesTheVariantThatTheRulesChoose) {
  const LibraryKernel& entry = find_kernel("gemm");
  const ahead::Exported gemm = exported(
      library::KernelSource(entry), {},
      {{"m=1", "n=512", "k=512"}, {"m=300", "n=4096", "k=512"}, {"m=4096", "n=4096", "k=4096"}});
  ASSERT_GT(gemm.variants.size(), 1u);
  ExportedLibrary library(gemm);
  ASSERT_EQ(library.load(), 0) << library.message();
  std::mt19937 random(1);
  for (int i = 0; i < 60; ++i) {
    const auto length = [&] { return std::int64_t{8} << random() % 10; };
    const std::int64_t m = 1 + static_cast<std::int64_t>(random() % 5000), n = length(),
                       k = length();
    std::vector<std::int64_t> values = gemm.selector->rules.values_of(
        resolve_options(
            entry, {"m=" + std::to_string(m), "n=" + std::to_string(n), "k=" + std::to_string(k)}),
        kMultiprocessors);
    const std::size_t rule = gemm.selector->rules.match(values.data());
    expect_same(library, gemm.variants[gemm.selector->variant_of_rule[rule]],
                {{bf16, {m, k}}, {bf16, {n, k}}, {bf16, {m, n}}});
    if (HasFailure()) break;
  }
}

// Sizes whose own variant was not kept have that of the last sizes that were.
TEST_F(CFiles, TheLastVariantServesWhereNoneWasKept) {
  const LibraryKernel& entry = find_kernel("gemm");
  const ahead::Exported gemm =
      exported(library::KernelSource(entry), {},
               {{"m=4096", "n=4096", "k=4096"}, {"m=1", "n=512", "k=512"}});
  ASSERT_EQ(gemm.variants.size(), 2u);
  const OptionValues options = resolve_options(entry, {});
  const std::vector<library::Rule>& rules = gemm.selector->rules.rules();
  int others = 0;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const std::string own = library::name_of(library::choice_of(entry, options, rules[i]));
    const bool is_first = own == gemm.variants[0].name;
    EXPECT_EQ(gemm.selector->variant_of_rule[i], is_first ? 0u : 1u) << own;
    others += !is_first && own != gemm.variants[1].name;
  }
  EXPECT_GT(others, 0);
}

// Schedules that refuse a window stand in rules that none comes to.
TEST_F(CFiles, WithoutVariantsThatTheOptionsExclude) {
  const ahead::Exported windowed = exported(library::KernelSource(find_kernel("attention_forward")),
                                            {"heads=4", "kv_heads=4", "causal=true", "window=100"});
  ASSERT_EQ(windowed.variants.size(), 1u);
  ExportedLibrary library(windowed);
  ASSERT_EQ(library.load(), 0) << library.message();
  const std::vector<std::int64_t> shape = {1, 300, 4, 64};
  expect_same(library, windowed.variants[0],
              {{bf16, shape}, {bf16, shape}, {bf16, shape}, {bf16, shape}, {f32, {1, 4, 300}}});
}

// Each GPU takes the variants of its own architecture, by that one's rules.
TEST_F(CFiles, SeveralArchitectures) {
  const library::KernelSource source(find_kernel("gemm"));
  const std::vector<std::vector<std::string>> kept = {{"m=1", "n=512", "k=512"},
                                                      {"m=4096", "n=4096", "k=4096"}};
  const std::vector<ahead::Exported> all = {exported(source, {}, kept, "sm_90a"),
                                            exported(source, {}, kept, "sm_100a")};
  for (std::size_t arch = 0; arch < all.size(); ++arch) {
    ExportedLibrary library(all);
    state_->capability = arch == 0 ? 9 : 10;
    ASSERT_EQ(library.load(), 0) << library.message();
    for (const std::int64_t m : {1, 4096}) {
      const std::string size = std::to_string(m == 1 ? 512 : m);
      std::size_t variant = 0;
      if (all[arch].selector) {
        const library::CompiledRules& rules = all[arch].selector->rules;
        std::vector<std::int64_t> values = rules.values_of(
            resolve_options(source.entry(), {"m=" + std::to_string(m), "n=" + size, "k=" + size}),
            kMultiprocessors);
        variant = all[arch].selector->variant_of_rule[rules.match(values.data())];
      }
      const std::int64_t n = std::stoll(size);
      expect_same(library, all[arch].variants[variant],
                  {{bf16, {m, n}}, {bf16, {n, n}}, {bf16, {m, n}}});
    }
  }
  ExportedLibrary library(all);
  state_->capability = 12;
  EXPECT_EQ(library.load(), 3);
  EXPECT_THAT(library.message(), HasSubstr("12.0, and this is built for sm_90a, sm_100a"));
  EXPECT_EQ(state_->live_handles, 0);
}

// libtilewright.so computes what a GPU's kernel would: one of the library, and one with a scalar.
TEST_F(CFiles, RunsOnTheCpu) {
  const std::vector<std::int64_t> shape = {8, 5}, longer = {9, 5};
  std::vector<float> x(40);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.5f * static_cast<float>(i % 7);
  const auto tensor = [](std::vector<float>& values, const std::vector<std::int64_t>& sizes) {
    return tilewright_tensor{values.data(), "f32", 2, sizes.data(), nullptr};
  };
  for (const bool is_own : {false, true}) {
    const library::KernelSource source =
        is_own ? scaled() : library::KernelSource(find_kernel("softmax"));
    ExportedLibrary library({exported(source, is_own ? std::vector<std::string>{}
                                                     : std::vector<std::string>{"dtype=f32"})},
                            is_own ? "c++" : "c", true);
    std::vector<float> y(is_own ? 45 : 40, std::nanf(""));
    const std::vector<float> scalars(is_own ? 1 : 0, 3.0f);
    const tilewright_tensor out = tensor(y, is_own ? longer : shape);
    const ExportedArguments arguments({tensor(x, shape), out}, scalars);
    EXPECT_EQ(library.launch(arguments), 3);  // nothing is loaded
    {
      const runtime::ScopedVariable missing("TILEWRIGHT_LIBRARY", "/nowhere/libtilewright.so");
      EXPECT_EQ(library.load(-1), 3);
      EXPECT_THAT(library.message(), HasSubstr("libtilewright.so is not here: /nowhere"));
    }
    const runtime::ScopedVariable there("TILEWRIGHT_LIBRARY", TILEWRIGHT_LIBRARY);
    ASSERT_EQ(library.load(-1), 0) << library.message();
    EXPECT_EQ(library.check(arguments), 0) << library.message();
    EXPECT_EQ(library.workspace(arguments), 0);
    ASSERT_EQ(library.launch(arguments), 0);
    for (std::size_t i = 0; i < x.size(); ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < 5; ++j) sum += std::exp(x[i / 5 * 5 + j]);
      EXPECT_NEAR(y[i], is_own ? 3 * x[i] : std::exp(x[i]) / sum, 1e-5) << i;
    }
    tilewright_tensor wrong = tensor(x, shape);
    wrong.dtype = "i32";
    EXPECT_EQ(library.check(ExportedArguments({wrong, out}, scalars)), 2);
    EXPECT_THAT(library.message(), HasSubstr("X is i32"));
    EXPECT_EQ(library.launch(ExportedArguments({tensor(x, longer), out}, scalars)), 2);
    EXPECT_EQ(library.load(-2), 2);
    std::fill(y.begin(), y.end(), std::nanf(""));
    ASSERT_EQ(library.load(0), 0) << library.message();  // the GPU's, which computes nothing here
    library.launch(arguments);
    EXPECT_TRUE(std::isnan(y[0]));
  }
  EXPECT_EQ(state_->live_handles, 0);
}

TEST_F(CFiles, RefusesWhatHasNoFormInC) {
  const auto refusal = [](const library::KernelSource& source) -> std::string {
    try {
      exported(source);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal(library::KernelSource(find_kernel("gemm_reduce_scatter"))),
              HasSubstr("it runs on several ranks"));
  const auto of_program = [&](const Program& program) {
    LibraryKernel entry = find_kernel("attention_decode");
    entry.schedules.clear();
    entry.rules.clear();
    entry.build_program = [&](const OptionValues&) { return program; };
    return refusal(library::KernelSource(entry));
  };
  EXPECT_THAT(of_program(Program("two", 2)), HasSubstr("two has no form in C: it has 2 ranks"));
  EXPECT_THAT(of_program(TwoKernels("second", true).program), HasSubstr("it has a second stream"));
  EXPECT_THAT(of_program(TwoKernels("first", false).program),
              HasSubstr("a scalar depends on the number of the run"));
  const char* const doubled =
      "kernel \"x\" tile\ndim n\nin X: f32[(n + n)] = %1\ngrid (1)\nbody (%0: i32) {\n}\n";
  EXPECT_THAT(refusal(library::KernelSource::of_text(doubled, "x.tw")),
              HasSubstr("no axis of a tensor says what n is"));
  const auto files_of = [](const std::string& name, const std::string& tensor) {
    Kernel kernel(name);
    const Dim rows = kernel.dim("rows");
    store(kernel.out(tensor, f32, {rows})(rows.block(kernel.grid(ceil_div(rows, 32))[0], 32)),
          zeros({32}));
    return ahead::c_files(
        {exported(library::KernelSource::of_text(text_of(kernel), "a_kernel.tw"))});
  };
  files_of("fine", "Y");
  // Keywords, and macros of what the file includes.
  for (const char* word : {"default", "NULL", "EOF", "stderr", "va_arg"}) {
    EXPECT_THROW(files_of(word, "Y"), Error) << word;
    EXPECT_THROW(files_of("fine", word), Error) << word;
  }
}

}  // namespace
}  // namespace tilewright::test
