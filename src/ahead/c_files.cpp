#include "ahead/c_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "ahead/c_dims.h"
#include "ahead/c_variant.h"
#include "ahead/texts.h"
#include "ir/text.h"
#include "library/schedule_choice.h"
#include "support/characters.h"
#include "support/diagnostic.h"
#include "tilewright/version.h"

namespace tilewright::ahead {
namespace {

using ir::ProgramBuffer;

constexpr int kAbi = 1;

// The operation for several architectures, one after the other.
using Architectures = std::vector<Exported>;

std::string names_of(const Architectures& all) {
  std::vector<std::string> names;
  for (const Exported& each : all) names.push_back(each.arch);
  return fmt::format("{}", fmt::join(names, ", "));
}

// What callers pass: of every variant the same.
std::vector<const ProgramBuffer*> passed(const Exported& exported) {
  std::vector<const ProgramBuffer*> buffers;
  for (const ProgramBuffer& buffer : exported.variants.front().program.buffers) {
    if (buffer.is_passed()) buffers.push_back(&buffer);
  }
  return buffers;
}

const std::vector<ir::ProgramScalar>& scalars(const Exported& exported) {
  return exported.variants.front().program.scalars;
}

bool is_written(const ProgramBuffer& buffer) { return buffer.kind != ProgramBuffer::Kind::in; }

const char* c_type(DType scalar) { return scalar == DType::f32 ? "float" : "int32_t"; }

// "sm_90a": 9, 0.
std::pair<int, int> capability(const std::string& arch) {
  const int number = std::stoi(arch.substr(arch.find('_') + 1));
  return {number / 10, number % 10};
}

void check_names(const Exported& exported) {
  static const std::set<std::string> words = {
      "auto", "bool", "break", "case", "catch", "char", "class", "const", "continue", "default",
      "delete", "do", "double", "else", "enum", "export", "extern", "false", "float", "for",
      "friend", "goto", "if", "inline", "int", "long", "mutable", "namespace", "new", "not",
      "operator", "or", "private", "public", "register", "restrict", "return", "short", "signed",
      "sizeof", "static", "struct", "switch", "template", "this", "throw", "true", "try", "typedef",
      "typename", "union", "unsigned", "using", "virtual", "void", "volatile", "while", "size",
      "workspace",
      // macros of what the file includes
      "alloca", "BIG_ENDIAN", "BUFSIZ", "BYTE_ORDER", "EOF", "errno", "EXIT_FAILURE",
      "EXIT_SUCCESS", "FILENAME_MAX", "FOPEN_MAX", "linux", "LITTLE_ENDIAN", "NFDBITS", "NULL",
      "offsetof", "PDP_ENDIAN", "RAND_MAX", "SEEK_CUR", "SEEK_END", "SEEK_SET", "SIZE_MAX",
      "stderr", "stdin", "stdout", "TIME_UTC", "TMP_MAX", "unix", "va_arg", "va_copy", "va_end",
      "va_start", "WNOHANG", "WUNTRACED"};
  const auto check = [&](const std::string& name, SourceLocation where) {
    if (is_identifier(name) && words.count(name) == 0) return;
    Diagnostic(where, fmt::format("{}: '{}' is no name in C, or is taken", exported.name, name))
        .fix("call it otherwise in the kernel")
        .raise();
  };
  check(exported.name, {});
  for (const ProgramBuffer* buffer : passed(exported)) check(buffer->name, buffer->where);
  for (const ir::ProgramScalar& scalar : scalars(exported)) check(scalar.name, scalar.where);
}

std::string replaced(std::string text, const std::string& word, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += by.size()) {
    text.replace(at, word.size(), by);
  }
  return text;
}

std::string built_with(const Exported& exported) {
  std::vector<std::string> settings;
  for (const auto& [name, value] : exported.options) {
    if (!value.empty()) settings.push_back(name + "=" + value);
  }
  return settings.empty() ? "" : fmt::format("\n * Built with {}.", fmt::join(settings, ", "));
}

constexpr const char* kChoosesCpu = R"(
 * A device of -1 is the CPU, for all calls until another load or unload: tensors are then the
 * host's, a launch is done when it returns, and libtilewright.so computes it, which is loaded at
 * run time as libtilewright.so.0, or as TILEWRIGHT_LIBRARY in the environment says.)";

std::string header(const Architectures& all, bool with_cpu) {
  const Exported& exported = all.front();
  std::string guard = exported.name;
  for (char& c : guard) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::string fields;
  for (const ProgramBuffer* buffer : passed(exported)) {
    fields += fmt::format("  tilewright_tensor {}; /* {}: {} {{{}}} */\n", buffer->name,
                          buffer->kind == ProgramBuffer::Kind::in    ? "read"
                          : buffer->kind == ProgramBuffer::Kind::out ? "written"
                                                                     : "read and written",
                          name_of(buffer->dtype), axes_text(buffer->shape));
  }
  for (const ir::ProgramScalar& scalar : scalars(exported)) {
    fields += fmt::format("  {} {};\n", c_type(scalar.dtype), scalar.name);
  }
  return fmt::format(
      R"(#ifndef {guard}_H
#define {guard}_H

#include <stddef.h>
#include <stdint.h>

/* {name}: {description}.{built}
 * Made by Tilewright {version} for {arch}. {name}.c needs nothing but libcuda.so.1 of the NVIDIA
 * driver, which it loads at run time.
 *
 * Any thread may call these, several at a time, but for unload: no other call may be running then.
 * None prints or exits. Each int is a status: 0 done, 2 an argument is wrong, 3 the driver or the
 * GPU is not here or {name}_load was not called, and from 65536 on that plus an error of CUDA.
 * `message`, which may be NULL, is text of at most `room` bytes that names the argument. */

#ifndef TILEWRIGHT_BUILD_ABI
#define TILEWRIGHT_BUILD_ABI {abi}
#endif

#ifdef __cplusplus
extern "C" {{
#endif

#ifndef TILEWRIGHT_TENSOR
#define TILEWRIGHT_TENSOR
/* A tensor in the GPU's memory. */
typedef struct tilewright_tensor {{
  void* data;             /* element 0 */
  const char* dtype;      /* "bf16", "f16", "f32", ...; NULL: the kernel's own */
  int32_t rank;           /* number of axes */
  const int64_t* shape;   /* elements of each axis */
  const int64_t* strides; /* in elements; NULL for row-major */
}} tilewright_tensor;
#endif

typedef struct {name}_arguments {{
  uint32_t size; /* sizeof({name}_arguments) */
{fields}  void* workspace; /* {name}_workspace() bytes at a multiple of 256; of one launch at a time */
}} {name}_arguments;

/* Loads the kernels on the GPU of that number: once, before the first launch there and before a
 * capture in a CUDA graph. They are in the device's primary context, which CUDA's runtime uses.{cpu} */
int {name}_load(int device, char* message, size_t room);
void {name}_unload(void);

/* Whether a launch would take the arguments. Nothing is queued, and no GPU is needed. */
int {name}_check(const {name}_arguments* arguments, char* message, size_t room);

/* How many bytes of the GPU's memory a launch with such sizes needs beside its tensors, which need
 * not be there yet; -1 where they are wrong. What they hold before and after a launch is of no
 * account. */
int64_t {name}_workspace(const {name}_arguments* arguments);

/* Queues it on `stream`, a CUstream or cudaStream_t of the current GPU; NULL: the default stream.
 * The tensors must stay until the stream has passed it. It allocates nothing and waits for nothing,
 * and can be captured. */
int {name}_launch(const {name}_arguments* arguments, void* stream);

#ifdef __cplusplus
}}
#endif

#endif
)",
      fmt::arg("guard", guard), fmt::arg("name", exported.name),
      fmt::arg("description", exported.description), fmt::arg("built", built_with(exported)),
      fmt::arg("version", TILEWRIGHT_VERSION), fmt::arg("arch", names_of(all)),
      fmt::arg("abi", kAbi), fmt::arg("fields", fields),
      fmt::arg("cpu", with_cpu ? kChoosesCpu : ""));
}

// As words of 64 bits, which compile faster than bytes; the machines that GPUs are in are
// little-endian.
std::string words_text(const std::string& name, const std::string& bytes) {
  std::string text = fmt::format("static const uint64_t {}[] = {{", name);
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min<std::size_t>(8, bytes.size() - at));
    fmt::format_to(std::back_inserter(text), "{}0x{:x}u",
                   at == 0        ? "\n  "
                   : at % 64 == 0 ? ",\n  "
                                  : ", ",
                   word);
  }
  return replaced(std::move(text), "u,", "ULL,") + "};\n";
}

struct Kernels {
  std::string cubins, table;
  std::vector<std::size_t> first;  // of each variant
  std::size_t count = 0;

  void add(const Exported& exported) {
    for (const Variant& variant : exported.variants) {
      first.push_back(count);
      for (const compiler::BuiltKernel& kernel : variant.kernels) {
        cubins += words_text(fmt::format("cubin_{}", count), kernel.build.kernel.cubin);
        table += fmt::format(
            "    {{cubin_{}, {}, {}, {}}},\n", count++, quoted(kernel.program.source.entry),
            kernel.program.machine.shared_bytes, kernel.program.machine.cluster > 8 ? 1 : 0);
      }
    }
  }
};

// How a caller's tensors say the length, in C.
std::string c_length(const library::LengthSource& source) {
  std::string text = fmt::format("given[{}].shape[{}]", source.tensor, source.axis);
  if (source.excess != 0) text += fmt::format(" - {}", source.excess);
  return text;
}

// All estimates of gemm take some microseconds, as long as the rest of a launch.
constexpr const char* kRemembered = R"(
/* The same of the sizes that were served lately. */
static int tw_variant_@ARCH@(const tw_run* run, const tw_tensor* given) {
  static struct {
    int64_t sizes[@COUNT@];
    int served; /* variant + 1 */
  } lately[64];
  static pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER;
  const int64_t sizes[] = {@SIZES@};
  uint64_t hash = 0;
  int i, served = 0;
  for (i = 0; i < @COUNT@; ++i) {
    hash = (hash ^ (uint64_t)sizes[i]) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 32;
  }
  pthread_mutex_lock(&looking);
  if (memcmp(lately[hash % 64].sizes, sizes, sizeof sizes) == 0) served = lately[hash % 64].served;
  pthread_mutex_unlock(&looking);
  if (served > 0) return served - 1;
  served = tw_variant_by_rules_@ARCH@(run, given) + 1;
  pthread_mutex_lock(&looking);
  memcpy(lately[hash % 64].sizes, sizes, sizeof sizes);
  lately[hash % 64].served = served;
  pthread_mutex_unlock(&looking);
  return served - 1;
}

)";

// Of the architecture of this number, whose variants are counted from `first` on.
std::string selector_text(const Exported& exported, std::size_t number, std::size_t first) {
  if (!exported.selector) return "";
  const Selector& selector = *exported.selector;
  const library::CompiledRules& rules = selector.rules;
  std::string text = fmt::format(
      "/* Which variant of {} serves which sizes. */\n"
      "static int tw_variant_by_rules_{}(const tw_run* run, const tw_tensor* given) {{\n"
      "  int64_t v[{}];\n",
      exported.arch, number, rules.value_count());
  for (std::size_t i = 0; i < rules.fact_count(); ++i) {
    std::string value = c_number(selector.values[i]);
    for (const library::LengthSource& source : selector.sources) {
      if (source.value == i) value = c_length(source);
    }
    if (i == rules.multiprocessors()) value = "run->multiprocessors";
    text += fmt::format("  v[{}] = {}; /* {} */\n", i, value, rules.name_of(i));
  }
  for (std::size_t i = 0; i < rules.lets().size(); ++i) {
    const std::size_t value = rules.fact_count() + i;
    text += fmt::format("  v[{}] = {}; /* {} */\n", value, rules.lets()[i].c_text(),
                        rules.name_of(value));
  }
  for (std::size_t i = 0; i < rules.rules().size(); ++i) {
    const library::Rule& rule = rules.rules()[i];
    text += rule.is_unconditional
                ? fmt::format("  return {};\n", first + selector.variant_of_rule[i])
                : fmt::format("  if ({} != 0) return {};\n", rule.condition.c_text(),
                              first + selector.variant_of_rule[i]);
  }
  std::vector<std::string> sizes = {"run->multiprocessors"};
  for (const library::LengthSource& source : selector.sources) sizes.push_back(c_length(source));
  std::string remembered = replaced(kRemembered, "@COUNT@", std::to_string(sizes.size()));
  remembered = replaced(remembered, "@SIZES@", fmt::format("{}", fmt::join(sizes, ", ")));
  return text + "}\n" + replaced(remembered, "@ARCH@", std::to_string(number));
}

// The number of the variant that serves the sizes on the run's GPU.
std::string choice_text(const Architectures& all) {
  std::string text =
      "static int tw_variant(const tw_run* run, const tw_tensor* given) {\n  (void)given;\n"
      "  switch (run->arch) {\n";
  std::size_t first = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string choice =
        all[i].selector ? fmt::format("tw_variant_{}(run, given)", i) : std::to_string(first);
    text += fmt::format("    case {}: return {};\n", i, choice);
    first += all[i].variants.size();
  }
  return text + "  }\n  return -1;\n}\n\n";
}

// Takes the caller's arguments to the variant that serves them.
std::string serve_text(const Architectures& all) {
  const Exported& exported = all.front();
  const std::vector<const ProgramBuffer*> tensors = passed(exported);
  std::string text = fmt::format(
      "static int tw_serve(tw_run* run, const {}_arguments* given) {{\n"
      "  tw_tensor tensors[{}];\n  double scalars[{}];\n"
      "  memset(tensors, 0, sizeof tensors);\n  memset(scalars, 0, sizeof scalars);\n",
      exported.name, tensors.size(), std::max<std::size_t>(scalars(exported).size(), 1));
  for (std::size_t i = 0; i < scalars(exported).size(); ++i) {
    text += fmt::format("  scalars[{}] = given->{};\n", i, scalars(exported)[i].name);
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const ProgramBuffer& buffer = *tensors[i];
    text += fmt::format(
        "  tw_take(run, &tensors[{}], &given->{}, {}, {}, {}, {}, {}, {});\n", i, buffer.name,
        quoted(buffer.name), quoted(std::string(name_of(buffer.dtype))), buffer.shape.size(),
        size_of(buffer.dtype), is_written(buffer) ? 1 : 0, quoted(axes_text(buffer.shape)));
  }
  text += "  if (run->status != TW_OK) return run->status;\n";
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    for (std::size_t j = 0; j < tensors.size(); ++j) {
      if (i == j || !is_written(*tensors[i]) || (is_written(*tensors[j]) && j < i)) continue;
      text += fmt::format("  tw_apart(run, {}, &tensors[{}], {}, {}, &tensors[{}], {});\n",
                          quoted(tensors[i]->name), i, size_of(tensors[i]->dtype),
                          quoted(tensors[j]->name), j, size_of(tensors[j]->dtype));
    }
  }
  text +=
      "  if (tw_is_on_host()) return tw_serve_on_host(run, given, scalars);\n"
      "  switch (tw_variant(run, tensors)) {\n";
  std::size_t variants = 0;
  for (const Exported& each : all) variants += each.variants.size();
  for (std::size_t i = 0; i < variants; ++i) {
    text += fmt::format("    case {0}: variant_{0}(run, tensors, scalars); break;\n", i);
  }
  return text + "  }\n  return run->status;\n}\n\n";
}

// What computes on the CPU, or what stands for it where nothing does.
std::string host_text(const Exported& exported, bool with_cpu) {
  const std::string serve = fmt::format(
      "static int tw_serve_on_host(tw_run* run, const {}_arguments* given,\n"
      "                            const double* scalars) {{\n",
      exported.name);
  if (!with_cpu) {
    return "#define tw_is_on_host() 0\n#define tw_load_host(run) (void)(run)\n"
           "#define tw_unload_host() (void)0\n" +
           serve + "  (void)given;\n  (void)scalars;\n  return run->status;\n}\n\n";
  }
  std::vector<std::string> options, tensors;
  for (const auto& [name, value] : exported.options) {
    if (!value.empty()) options.push_back(name + "=" + value);
  }
  for (const ProgramBuffer* buffer : passed(exported)) tensors.push_back("given->" + buffer->name);
  std::string text, create;
  if (exported.file_text.empty()) {
    create = fmt::format("tw_host.create({}, {}, \"cpu\", 0, &tw_host.kernel)",
                         quoted(exported.name), quoted(fmt::format("{}", fmt::join(options, ","))));
  } else {
    // Words, since a compiler need not take texts that are as long.
    text = words_text("tw_file", exported.file_text + '\0') + "\n";
    create = fmt::format(
        "tw_host.create_from_text((const char*)tw_file, {}, \"\", \"cpu\", 0, &tw_host.kernel)",
        quoted(exported.name + ".tw"));
  }
  text += replaced(replaced(kHost, "@CREATE@", create), "@VERSION@", TILEWRIGHT_VERSION);
  const std::size_t count = scalars(exported).size();
  return text + "#define tw_is_on_host() (tw_host.kernel != NULL)\n\n" + serve +
         fmt::format(
             "  const tilewright_tensor all[] = {{{}}};\n"
             "  if (run->mode != TW_LAUNCH) return run->status;\n"
             "  tw_host_status(run, {});\n  {}return run->status;\n}}\n\n",
             fmt::join(tensors, ", "),
             count == 0 ? fmt::format("tw_host.run(tw_host.kernel, all, {}, NULL)", tensors.size())
                        : fmt::format("tw_host.run_with_scalars(tw_host.kernel, all, {}, scalars, "
                                      "{}, NULL)",
                                      tensors.size(), count),
             count == 0 ? "(void)scalars;\n  " : "");
}

// The architectures, and which kernels are theirs.
std::string architectures_text(const Architectures& all) {
  std::string text = "static const tw_arch tw_archs[TW_ARCHS] = {\n";
  std::size_t first = 0;
  for (const Exported& each : all) {
    std::size_t count = 0;
    for (const Variant& variant : each.variants) count += variant.kernels.size();
    const auto [major, minor] = capability(each.arch);
    text +=
        fmt::format("    {{{}, {}, {}, {}}}, /* {} */\n", major, minor, first, count, each.arch);
    first += count;
  }
  return text + "};\n\n";
}

std::string source(const Architectures& all, bool with_cpu) {
  const std::string& name = all.front().name;
  Kernels kernels;
  for (const Exported& each : all) kernels.add(each);
  std::string text = fmt::format(
      "/* Made by Tilewright {} for {}: see {}.h. */\n\n#include \"{}.h\"\n\n"
      "#include <dlfcn.h>\n#include <pthread.h>\n#include <stdarg.h>\n#include <stdio.h>\n"
      "#include <stdlib.h>\n#include <string.h>\n\n"
      "#define TW_KERNELS {}\n#define TW_ARCHS {}\n#define TW_ARCH_NAMES {}\n"
      "#define TW_MULTIPROCESSORS {} /* until a GPU is loaded */\n#define TW_HAS_CPU {}\n\n",
      TILEWRIGHT_VERSION, names_of(all), name, name, kernels.count, all.size(),
      quoted(names_of(all)), library::multiprocessors_of(all.front().arch), with_cpu ? 1 : 0);
  text += kSupport;
  text += "\n/* ---- The kernels ---- */\n\n" + kernels.cubins +
          "\nstatic const tw_kernel tw_kernels[TW_KERNELS] = {\n" + kernels.table + "};\n\n" +
          architectures_text(all);
  std::size_t number = 0;
  for (const Exported& each : all) {
    for (const Variant& variant : each.variants) {
      text += c_variant(variant, number, kernels.first[number]) + "\n";
      ++number;
    }
  }
  std::size_t first = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    text += selector_text(all[i], i, first);
    first += all[i].variants.size();
  }
  return text + choice_text(all) + host_text(all.front(), with_cpu) + serve_text(all) +
         replaced(kCalls, "@NAME@", name);
}

nlohmann::ordered_json variants_of(const Exported& exported) {
  using Json = nlohmann::ordered_json;
  Json variants = Json::array();
  for (const Variant& variant : exported.variants) {
    Json kernels = Json::array(), dims = Json::array();
    for (const compiler::BuiltKernel& kernel : variant.kernels) {
      const ir::Kernel& machine = kernel.program.machine;
      kernels.push_back({{"name", machine.name},
                         {"threads", machine.threads},
                         {"cluster", machine.cluster},
                         {"shared_bytes", machine.shared_bytes},
                         {"cubin_bytes", kernel.build.kernel.cubin.size()},
                         {"form", fmt::format("{:016x}", ir::form_hash(machine))}});
    }
    for (const Dim& dim : variant.program.dims) {
      dims.push_back({{"name", dim.name()},
                      {"multiple", dim.facts().multiple},
                      {"minimum", dim.facts().minimum},
                      {"maximum", dim.facts().maximum}});
    }
    variants.push_back(
        {{"name", variant.name}, {"target", exported.arch}, {"dims", dims}, {"kernels", kernels}});
  }
  return variants;
}

std::string metadata(const Architectures& all, bool with_cpu) {
  const Exported& exported = all.front();
  using Json = nlohmann::ordered_json;
  Json tensors = Json::array(), numbers = Json::array(), variants = Json::array();
  Json targets = Json::array();
  for (const ProgramBuffer* buffer : passed(exported)) {
    Json shape = Json::array();
    for (const Dim& dim : buffer->shape) shape.push_back(dim.to_string());
    tensors.push_back({{"name", buffer->name},
                       {"dtype", name_of(buffer->dtype)},
                       {"shape", shape},
                       {"read", buffer->kind != ProgramBuffer::Kind::out},
                       {"written", is_written(*buffer)}});
  }
  for (const ir::ProgramScalar& scalar : scalars(exported)) {
    numbers.push_back({{"name", scalar.name}, {"dtype", name_of(scalar.dtype)}});
  }
  for (const Exported& each : all) {
    targets.push_back(each.arch);
    for (auto& variant : variants_of(each)) variants.push_back(variant);
  }
  if (with_cpu) targets.push_back("cpu");
  Json options = Json::object();
  for (const auto& [name, value] : exported.options) options[name] = value;
  return Json({{"name", exported.name},
               {"abi", kAbi},
               {"tilewright", TILEWRIGHT_VERSION},
               {"targets", targets},
               {"options", options},
               {"tensors", tensors},
               {"scalars", numbers},
               {"variants", variants}})
             .dump(2) +
         "\n";
}

std::string cmake(const std::string& name) {
  return replaced(R"(# include(@NAME@.cmake) gives the library @NAME@.
add_library(@NAME@ STATIC "${CMAKE_CURRENT_LIST_DIR}/@NAME@.c")
target_include_directories(@NAME@ PUBLIC "${CMAKE_CURRENT_LIST_DIR}")
set_target_properties(@NAME@ PROPERTIES POSITION_INDEPENDENT_CODE ON)
find_package(Threads REQUIRED)
target_link_libraries(@NAME@ PUBLIC Threads::Threads ${CMAKE_DL_LIBS})
)",
                  "@NAME@", name);
}

std::string package(const std::string& name) {
  return replaced(
      R"(# Of lib@NAME@.a, which @NAME@.c was compiled to, beside this file and the header.
Name: @NAME@
Description: @NAME@, a kernel made by Tilewright
Version: @VERSION@
Cflags: -I${pcfiledir}
Libs: -L${pcfiledir} -l@NAME@ -pthread -ldl
)",
      "@NAME@", name);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> c_files(const std::vector<Exported>& all,
                                                         bool with_cpu) {
  for (const Exported& each : all) check_names(each);
  const std::string& name = all.front().name;
  return {{name + ".h", header(all, with_cpu)},
          {name + ".c", source(all, with_cpu)},
          {name + ".json", metadata(all, with_cpu)},
          {name + ".cmake", cmake(name)},
          {name + ".pc", replaced(package(name), "@VERSION@", TILEWRIGHT_VERSION)}};
}

}  // namespace tilewright::ahead
