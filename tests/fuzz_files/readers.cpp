#include "fuzz_files/readers.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <exception>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "check/golden_manifest.h"
#include "check/ptx_file.h"
#include "ir/program_text.h"
#include "ir/text.h"
#include "library/schedule_rules.h"
#include "library/stated_input.h"
#include "runtime/cubin.h"
#include "support/npy.h"
#include "support/safetensors.h"
#include "target/verify.h"
#include "tilewright/error.h"
#include "tilewright/library.h"

namespace tilewright::fuzz_files {
namespace {

// A file in memory, for readers that open one.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& bytes) : descriptor_(memfd_create("input", MFD_CLOEXEC)) {
    const bool written = descriptor_ >= 0 && ::write(descriptor_, bytes.data(), bytes.size()) ==
                                                 static_cast<ssize_t>(bytes.size());
    if (!written) throw std::runtime_error("there is no file in memory");
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  std::string path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }

 private:
  int descriptor_;
};

void npy(const std::string& bytes) {
  const MemoryFile file(bytes);
  for (const NpyRaw raw : {NpyRaw::plain, NpyRaw::bf16, NpyRaw::f8e4m3}) {
    try {
      read_npy(file.path(), raw);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::usage) throw;
    }
  }
}

void safetensors(const std::string& bytes) {
  // The reader takes a file for this format by its name.
  const MemoryFile file(bytes);
  const std::string path = fmt::format("/tmp/tilewright-fuzz-{}.safetensors", ::getpid());
  ::unlink(path.c_str());
  if (::symlink(file.path().c_str(), path.c_str()) != 0) throw std::runtime_error("no link");
  for (const char* key : {"", ":a", ":b", ":__metadata__"}) {
    try {
      read_safetensors(path + key);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::usage) throw;
    }
  }
  ::unlink(path.c_str());
}

void tw(const std::string& bytes) {
  const ir::Kernel kernel = ir::read_verified(
      bytes, "input.tw", [](const ir::Kernel& read) { target::verify(read, ErrorKind::usage); });
  const std::string text = ir::to_text(kernel);
  if (ir::to_text(ir::parse_text(text, "again.tw")) != text) {
    throw std::logic_error("what is printed is not what was read");
  }
}

void twp(const std::string& bytes) {
  const std::string text = ir::to_text(ir::parse_program(bytes, "input.twp"));
  if (ir::to_text(ir::parse_program(text, "again.twp")) != text) {
    throw std::logic_error("what is printed is not what was read");
  }
}

void rules(const std::string& bytes) {
  const LibraryKernel& kernel = find_kernel("gemm");
  const library::CompiledRules compiled(kernel, {"sm_90a", "input.txt", bytes});
  std::vector<std::int64_t> values = compiled.values_of(resolve_options(kernel, {}), 132);
  compiled.match(values.data());
}

void manifest(const std::string& bytes) {
  const auto text = [](const std::string& of) {
    return checks::manifest_text(checks::parse_manifest(of, "manifest.json"));
  };
  const std::string once = text(bytes);
  if (text(once) != once) throw std::logic_error("what is written is not what was read");
}

// Of the JSON beside a FILE.ptx.
void launch(const std::string& bytes) { checks::read_ptx_launch(bytes, "launch.json", 1); }

// What an input holds, by the words of --in: a line for each dtype.
void words(const std::string& bytes) {
  constexpr DType kAll[] = {f32, f16, bf16, f8e4m3, i32, i64, i8, u8, u32, DType::boolean};
  std::istringstream lines(bytes);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line); ++number) {
    try {
      const auto stated = library::StatedInput::parse(line, "X");
      if (stated) stated->values(kAll[number % std::size(kAll)], {3, 5}, 1);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::usage) throw;
    }
  }
}

void cubin(const std::string& bytes) {
  try {
    runtime::read_cubin(bytes);
    runtime::cubin_variable(bytes, "a");
  } catch (const Error& error) {
    // Cubins come from the cache, which only the user writes: a damaged one is no input of his.
    if (error.message().find("is damaged") == std::string::npos) throw;
  }
}

const Reader kReaders[] = {
    {"npy",
     npy,
     {"\x93NUMPY", "\x01", "\x02", "{", "}", "(", ")", ",", "'descr'", "'fortran_order'", "'shape'",
      "True", "False", "'<f4'", "'|V2'", "'>f8'", "[('a', '<f4')]"}},
    {"safetensors",
     safetensors,
     {"{", "}", "[", "]", "\"", ":", ",", "\"dtype\"", "\"shape\"", "\"data_offsets\"", "\"BF16\"",
      "\"F32\"", "\"a\"", "\"__metadata__\"", "null", "1e999", "\\ud800", "-1"}},
    {"tw",
     tw,
     {"kernel",
      "tile",
      "scheduled",
      "machine",
      "dim",
      "in",
      "out",
      "inout",
      "scalar",
      "grid",
      "cluster",
      "threads",
      "resident",
      "require",
      "body",
      "yield",
      "for_loop",
      "while_loop",
      "if_then",
      "role",
      "%0",
      "%1",
      "{",
      "}",
      "(",
      ")",
      "[",
      "]",
      "tile<f32, 16x16>",
      "pending<f32, 64x64>",
      "view<bf16, 64x64>",
      "@\"a\":1",
      "register_layout[",
      "shared_layout[",
      "maps[[1:64:1], []]",
      "\\x0a",
      "ceil_div(",
      "floordiv",
      " // ",
      " % ",
      "dim(",
      "nan",
      "inf",
      "permutation = [",
      "sizes = [",
      "multiple_of(",
      "at_least("}},
    {"twp", twp, {"program",    "ranks",  "tensor",  "signals", "workspace", "scratch", "zeroed",
                  "stream",     "launch", "copy",    "zero",    "write",     "wait",    "record",
                  "wait_event", "kernel", "scalars", "epochs",  "of",        "value",   "run",
                  "event",      "[0]",    "[1, 2]",  "to",      "from",      "dim",     "scalar",
                  "@\"a\":1",   "\"x\"",  "(",       ")"}},
    {"rules", rules, {"when",  "let",  "else", "schedule",
                      "and",   "or",   "not",  "==",
                      "!=",    "<=",   ">=",   "(",
                      ")",     "min(", "max(", "ceil_div(",
                      "%",     "/",    "*",    "-",
                      "m",     "n",    "k",    "multiprocessors",
                      "dtype", "bf16", "tile", "gemm sm_90a v1",
                      "#"}},
    {"manifest",
     manifest,
     {"{",
      "}",
      "[",
      "]",
      "\"",
      ":",
      ",",
      "null",
      "-1",
      "1e999",
      "1e300",
      "\\ud800",
      "\"tilewright_golden\"",
      "\"kernel\"",
      "\"cases\"",
      "\"name\"",
      "\"settings\"",
      "\"inputs\"",
      "\"outputs\"",
      "\"weaknesses\"",
      "\"dtype\"",
      "\"bf16\"",
      "\"shape\"",
      "\"stated\"",
      "\"seed\"",
      "18446744073709551615",
      "\"allowed\"",
      "\"whole\""}},
    {"launch", launch, {"{",          "}",
                        "[",          "]",
                        "\"",         ":",
                        ",",          "null",
                        "-1",         "1e999",
                        "1e300",      "2147483648",
                        "\"kernel\"", "\"grid\"",
                        "\"block\"",  "\"cluster\"",
                        "\"shared\"", "\"arguments\"",
                        "\"tensor\"", "\"dtype\"",
                        "\"f32\"",    "\"shape\"",
                        "\"values\"", "\"nothing\"",
                        "\"i32\"",    "\"i64\"",
                        "\"f64\"",    "18446744073709551615"}},
    {"words",
     words,
     {"arange", "zeros", "full", "uniform", "permutation", "normal", ":", "-", "0", "0.5", "1e308",
      "nan", "inf", "18446744073709551616", ".npy", ".safetensors:", "/", "\n"}},
    {"cubin",
     cubin,
     {"\x7f"
      "ELF",
      ".nv.info", ".nv.info.", ".symtab", "\x04\x2f", "\x04\x11", "\x03\x19"}},
};

}  // namespace

std::span<const Reader> readers() { return kReaders; }

std::string finding(const Reader& reader, const std::string& bytes) {
  try {
    reader.read(bytes);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage) return fmt::format("of another kind: {}", error.what());
  } catch (const std::exception& error) {
    return fmt::format("it throws: {}", error.what());
  }
  return {};
}

}  // namespace tilewright::fuzz_files
