#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#include "cpu/instruction_sets.h"
#include "cpu/kernels/tables.h"
#include "support/diagnostic.h"
#include "support/escape.h"

namespace tilewright::cpu {
namespace {

// A table, and whether this machine has its instructions.
struct Set {
  const Kernels* kernels;
  bool is_here;
};

#if defined(__x86_64__)

struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(unsigned leaf, unsigned part = 0) {
  Registers r;
  if (__get_cpuid_count(leaf, part, &r.a, &r.b, &r.c, &r.d) == 0) return {};
  return r;
}

bool has_all(unsigned value, unsigned bits) { return (value & bits) == bits; }

// What the system saves of the registers when it changes from one thread to another.
unsigned saved_registers(const Registers& features) {
  if (!has_all(features.c, bit_OSXSAVE)) return 0;
  unsigned low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

// The system gives a process the tiles of AMX, which are large, where it asks for them.
bool request_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM of Linux
#if defined(__linux__)
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

struct Machine {
  bool v2, v3, v4, bf16, amx;
};

// The levels are those of the x86-64 psABI.
Machine this_machine() {
  constexpr unsigned kVectors256 = 6, kVectors512 = 0xe6,
                     kTiles = 0x60000;  // of the saved registers
  constexpr unsigned kLahf = 1, kLzcnt = 1u << 5, kBf16 = 1u << 5,
                     kAmx = 1u << 24 | 1u << 22;  // tiles, and their products of bf16
  const Registers first = cpuid(1), seventh = cpuid(7), extended = cpuid(0x80000001);
  const unsigned saved = saved_registers(first);
  Machine machine = {};
  machine.v2 = has_all(first.c, bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT |
                                    bit_CMPXCHG16B) &&
               has_all(extended.c, kLahf);
  machine.v3 = machine.v2 && has_all(saved, kVectors256) &&
               has_all(first.c, bit_AVX | bit_F16C | bit_FMA | bit_MOVBE) &&
               has_all(seventh.b, bit_AVX2 | bit_BMI | bit_BMI2) && has_all(extended.c, kLzcnt);
  machine.v4 =
      machine.v3 && has_all(saved, kVectors512) &&
      has_all(seventh.b, bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL);
  machine.bf16 = machine.v4 && has_all(cpuid(7, 1).a, kBf16);
  machine.amx =
      machine.bf16 && has_all(saved, kTiles) && has_all(seventh.d, kAmx) && request_tiles();
  return machine;
}

#elif defined(__aarch64__)

bool has_bf16() {
#if defined(__linux__)
  constexpr unsigned long kBf16 = 1ul << 14;  // HWCAP2_BF16
  return (getauxval(AT_HWCAP2) & kBf16) != 0;
#else
  return false;
#endif
}

#endif

// A set that differs from another in its product, and on AVX-512 in what stores bf16.
Kernels with_product(Kernels kernels, const char* name, decltype(Kernels::product) product) {
  kernels.name = name;
  kernels.product = product;
#if defined(__x86_64__)
  kernels.chain = chain_with_bf16;
  kernels.convert[static_cast<int>(Element::f32)][static_cast<int>(Element::bf16)] =
      convert_to_bf16;
#endif
  return kernels;
}

// The best last.
std::vector<Set> list_sets() {
#if defined(__x86_64__)
  static const Kernels bf16 = with_product(kKernelsV4, "bf16", product_with_bf16);
  static const Kernels amx = with_product(kKernelsV4, "amx", product_with_amx);
  const Machine machine = this_machine();
  return {{&kKernelsV2, machine.v2},
          {&kKernelsV3, machine.v3},
          {&kKernelsV4, machine.v4},
          {&bf16, machine.bf16},
          {&amx, machine.amx}};
#elif defined(__aarch64__)
  static const Kernels bf16 = with_product(kKernelsBaseline, "neon_bf16", product_with_bf16);
  return {{&kKernelsBaseline, true}, {&bf16, has_bf16()}};
#else
  return {{&kKernelsBaseline, true}};
#endif
}

const std::vector<Set>& sets() {
  static const std::vector<Set> all = list_sets();
  return all;
}

// "v2, v3"
std::string names(bool here_only) {
  std::string result;
  for (const Set& set : sets()) {
    if (here_only && !set.is_here) continue;
    result += (result.empty() ? "" : ", ") + std::string(set.kernels->name);
  }
  return result;
}

const Set* find_set(const char* name) {
  for (const Set& set : sets()) {
    if (std::strcmp(name, set.kernels->name) == 0) return &set;
  }
  return nullptr;
}

const Kernels& best_kernels() {
  const Kernels* best = nullptr;
  for (const Set& set : sets()) {
    if (set.is_here) best = set.kernels;
  }
  if (!best) {
    Diagnostic({}, "the target cpu needs the instructions of x86-64-v2, which this machine lacks",
               ErrorKind::unavailable)
        .fix("use the target interpreter")
        .raise();
  }
  return *best;
}

}  // namespace

const Kernels& choose_kernels(const char* asked) {
  if (!asked || !*asked) return best_kernels();
  const Set* const set = find_set(asked);
  if (!set) {
    Diagnostic({}, "TILEWRIGHT_CPU_ISA is \"" + escaped_comment(asked) +
                       "\", which is no instruction set of the target cpu")
        .fix("use one of " + names(false) + ", or unset it for the best that is here")
        .raise();
  }
  if (!set->is_here) {
    Diagnostic({}, "TILEWRIGHT_CPU_ISA is " + std::string(asked) +
                       ", whose instructions this machine lacks")
        .fix("use one of " + names(true) + ", or unset it for the best that is here")
        .raise();
  }
  return *set->kernels;
}

const Kernels& kernels() {
  static const Kernels& chosen = choose_kernels(std::getenv("TILEWRIGHT_CPU_ISA"));
  return chosen;
}

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const Set& set : sets()) {
    if (set.is_here) names.emplace_back(set.kernels->name);
  }
  return names;
}

const Kernels* find_kernels(const char* name) {
  const Set* const set = find_set(name);
  return set && set->is_here ? set->kernels : nullptr;
}

}  // namespace tilewright::cpu
