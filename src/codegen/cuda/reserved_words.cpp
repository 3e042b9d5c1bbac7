#include "codegen/cuda/reserved_words.h"

#include <algorithm>
#include <iterator>

namespace tilewright::codegen {
namespace {

constexpr std::string_view kWords[] = {
    // C++20
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break",
    "case", "catch", "char", "char8_t", "char16_t", "char32_t", "class", "compl", "concept",
    "const", "consteval", "constexpr", "constinit", "const_cast", "continue", "co_await",
    "co_return", "co_yield", "decltype", "default", "delete", "do", "double", "dynamic_cast",
    "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if",
    "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr",
    "operator", "or", "or_eq", "private", "protected", "public", "register", "reinterpret_cast",
    "requires", "return", "short", "signed", "sizeof", "static", "static_assert", "static_cast",
    "struct", "switch", "template", "this", "thread_local", "throw", "true", "try", "typedef",
    "typeid", "typename", "union", "unsigned", "using", "virtual", "void", "volatile", "wchar_t",
    "while", "xor", "xor_eq",
    // macros of NVRTC
    "NULL", "va_arg", "va_copy", "va_end", "va_start",
    // the prelude
    "i64", "u8", "u16", "u32", "u64",
    // CUDA
    "assert", "blockDim", "blockIdx", "clock", "clock64", "dim3", "free", "gridDim", "main",
    "malloc", "memcpy", "memset", "printf", "threadIdx", "warpSize"};

// Also with the f of the versions for float.
constexpr std::string_view kFunctions[] = {"abs",
                                           "acos",
                                           "acosh",
                                           "asin",
                                           "asinh",
                                           "atan",
                                           "atan2",
                                           "atanh",
                                           "cbrt",
                                           "ceil",
                                           "copysign",
                                           "cos",
                                           "cosh",
                                           "cospi",
                                           "cyl_bessel_i0",
                                           "cyl_bessel_i1",
                                           "erf",
                                           "erfc",
                                           "erfcinv",
                                           "erfcx",
                                           "erfinv",
                                           "exp",
                                           "exp10",
                                           "exp2",
                                           "expm1",
                                           "fabs",
                                           "fdim",
                                           "fdivide",
                                           "floor",
                                           "fma",
                                           "fmax",
                                           "fmin",
                                           "fmod",
                                           "frexp",
                                           "hypot",
                                           "ilogb",
                                           "isfinite",
                                           "isinf",
                                           "isnan",
                                           "j0",
                                           "j1",
                                           "jn",
                                           "labs",
                                           "ldexp",
                                           "lgamma",
                                           "llabs",
                                           "llmax",
                                           "llmin",
                                           "llrint",
                                           "llround",
                                           "log",
                                           "log10",
                                           "log1p",
                                           "log2",
                                           "logb",
                                           "lrint",
                                           "lround",
                                           "max",
                                           "min",
                                           "modf",
                                           "nan",
                                           "nearbyint",
                                           "nextafter",
                                           "norm",
                                           "norm3d",
                                           "norm4d",
                                           "normcdf",
                                           "normcdfinv",
                                           "pow",
                                           "rcbrt",
                                           "remainder",
                                           "remquo",
                                           "rhypot",
                                           "rint",
                                           "rnorm",
                                           "rnorm3d",
                                           "rnorm4d",
                                           "round",
                                           "rsqrt",
                                           "scalbln",
                                           "scalbn",
                                           "signbit",
                                           "sin",
                                           "sincos",
                                           "sincospi",
                                           "sinh",
                                           "sinpi",
                                           "sqrt",
                                           "tan",
                                           "tanh",
                                           "tgamma",
                                           "trunc",
                                           "ullmax",
                                           "ullmin",
                                           "umax",
                                           "umin",
                                           "y0",
                                           "y1",
                                           "yn"};

template <std::size_t N>
bool has(const std::string_view (&words)[N], std::string_view name) {
  return std::find(std::begin(words), std::end(words), name) != std::end(words);
}

}  // namespace

bool is_reserved(std::string_view name) {
  if (has(kWords, name) || has(kFunctions, name)) return true;
  if (!name.empty() && name.back() == 'f' && has(kFunctions, name.substr(0, name.size() - 1))) {
    return true;
  }
  // PTX takes no name of underscores alone; two at the beginning are the compiler's.
  return name == "_" || name.substr(0, 2) == "__";
}

}  // namespace tilewright::codegen
